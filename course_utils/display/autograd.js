// Reverse-mode gradients in plain JavaScript: a tensor remembers what it was made from,
// and how to hand its gradient on to that. Shapes are read as in PyTorch, rows are tokens.

class Tensor {
  constructor(shape, data, from = []) {
    this.shape = shape;
    this.data = data || new Float64Array(shape.reduce((a, b) => a * b, 1));
    this.grad = new Float64Array(this.data.length);
    this.from = from;
    this.back = () => {};
  }
}

// The gradient of one number by everything that it was made from, last made first.
function backward(loss) {
  const order = [], seen = new Set();
  const visit = (tensor) => {
    if (seen.has(tensor)) return;
    seen.add(tensor);
    tensor.from.forEach(visit);
    order.push(tensor);
  };
  visit(loss);
  loss.grad[0] = 1;
  order.reverse().forEach((tensor) => tensor.back());
}

// a + b, where b has the last axes of a and is used again for the others.
function add(a, b) {
  const n = b.data.length, out = new Tensor(a.shape, a.data.slice(), [a, b]);
  for (let i = 0; i < out.data.length; i++) out.data[i] += b.data[i % n];
  out.back = () => {
    for (let i = 0; i < out.grad.length; i++) {
      a.grad[i] += out.grad[i];
      b.grad[i % n] += out.grad[i];
    }
  };
  return out;
}

function scale(a, factor) {
  const out = new Tensor(a.shape, a.data.map((value) => factor * value), [a]);
  out.back = () => out.grad.forEach((g, i) => { a.grad[i] += factor * g; });
  return out;
}

// One row of a table for each id: (batch, token) becomes (batch, token, width).
function embed(table, ids) {
  const width = table.shape[1];
  const out = new Tensor([ids.length, ids[0].length, width], undefined, [table]);
  const flat = ids.flat();
  flat.forEach((id, i) => {
    out.data.set(table.data.subarray(id * width, (id + 1) * width), i * width);
  });
  out.back = () => flat.forEach((id, i) => {
    for (let k = 0; k < width; k++) table.grad[id * width + k] += out.grad[i * width + k];
  });
  return out;
}

// a (…, n, k) times b (k, m), or times its own b (…, k, m) for each; b may lie on its
// side, (…, m, k), as the keys do in Q K^T.
function matmul(a, b, transposed = false) {
  const [n, k] = a.shape.slice(-2), m = b.shape.at(transposed ? -2 : -1);
  const out = new Tensor([...a.shape.slice(0, -1), m], undefined, [a, b]);
  const [along, down] = transposed ? [1, k] : [m, 1];  // steps in b, by its k and its m
  const times = a.data.length / (n * k), stride = b.shape.length > 2 ? k * m : 0;
  // visits every product a[p] * b[q] that belongs to out[r]
  const each = (visit) => {
    for (let t = 0; t < times; t++) {
      for (let i = 0; i < n; i++) {
        for (let l = 0; l < k; l++) {
          visit((t * n + i) * k + l, t * stride + l * along, (t * n + i) * m);
        }
      }
    }
  };
  each((p, q, r) => {
    const left = a.data[p], right = b.data, sum = out.data;
    for (let j = 0; j < m; j++) sum[r + j] += left * right[q + j * down];
  });
  out.back = () => each((p, q, r) => {
    const left = a.data[p], right = b.data, onB = b.grad, g = out.grad;
    let onA = 0;
    for (let j = 0; j < m; j++) {
      onA += g[r + j] * right[q + j * down];
      onB[q + j * down] += g[r + j] * left;
    }
    a.grad[p] += onA;
  });
  return out;
}

// Columns `from` to `to` of (batch, token, width), cut into heads:
// (batch, head, token, width / heads).
function splitHeads(x, heads, from, to) {
  const [batch, n, width] = x.shape, d = (to - from) / heads;
  const out = new Tensor([batch, heads, n, d], undefined, [x]);
  const pairs = (visit) => {
    for (let r = 0; r < out.data.length; r++) {
      const i = r % d, token = Math.floor(r / d) % n;
      const head = Math.floor(r / (d * n)) % heads, b = Math.floor(r / (d * n * heads));
      visit(r, (b * n + token) * width + from + head * d + i);
    }
  };
  pairs((r, p) => { out.data[r] = x.data[p]; });
  out.back = () => pairs((r, p) => { x.grad[p] += out.grad[r]; });
  return out;
}

// The way back: (batch, head, token, d) becomes (batch, token, head * d).
function mergeHeads(x) {
  const [batch, heads, n, d] = x.shape;
  const out = new Tensor([batch, n, heads * d], undefined, [x]);
  const pairs = (visit) => {
    for (let p = 0; p < x.data.length; p++) {
      const i = p % d, token = Math.floor(p / d) % n;
      const head = Math.floor(p / (d * n)) % heads, b = Math.floor(p / (d * n * heads));
      visit(((b * n + token) * heads + head) * d + i, p);
    }
  };
  pairs((r, p) => { out.data[r] = x.data[p]; });
  out.back = () => pairs((r, p) => { x.grad[p] += out.grad[r]; });
  return out;
}

// Softmax over the last axis; with `causal`, a query sees no key after its own place.
function softmax(scores, causal = false) {
  const [n, m] = scores.shape.slice(-2), out = new Tensor(scores.shape, undefined, [scores]);
  const open = (row) => causal ? (row % n) + 1 : m;
  for (let row = 0; row * m < out.data.length; row++) {
    const at = row * m, seen = open(row);
    let largest = -Infinity, total = 0;
    for (let j = 0; j < seen; j++) largest = Math.max(largest, scores.data[at + j]);
    for (let j = 0; j < seen; j++) {
      total += out.data[at + j] = Math.exp(scores.data[at + j] - largest);
    }
    for (let j = 0; j < seen; j++) out.data[at + j] /= total;
  }
  out.back = () => {
    for (let row = 0; row * m < out.data.length; row++) {
      const at = row * m, seen = open(row);
      let mean = 0;
      for (let j = 0; j < seen; j++) mean += out.grad[at + j] * out.data[at + j];
      for (let j = 0; j < seen; j++) {
        scores.grad[at + j] += out.data[at + j] * (out.grad[at + j] - mean);
      }
    }
  };
  return out;
}

// Mean of -log p(label) over all rows of `classes` logits; a label below 0 is left out.
function crossEntropy(logits, labels, classes) {
  const asked = labels.filter((label) => label >= 0).length;
  const rows = new Tensor([labels.length, classes], logits.data);
  const p = softmax(rows).data, out = new Tensor([1], undefined, [logits]);
  labels.forEach((label, row) => {
    if (label >= 0) out.data[0] -= Math.log(p[row * classes + label]) / asked;
  });
  out.back = () => labels.forEach((label, row) => {
    if (label < 0) return;
    for (let c = 0; c < classes; c++) {
      const wanted = c === label ? 1 : 0;
      logits.grad[row * classes + c] += out.grad[0] * (p[row * classes + c] - wanted) / asked;
    }
  });
  return out;
}

// AdamW as PyTorch has it: averages of the gradient and of its square, both corrected
// for their start at 0, and a decay of the weights beside them.
class AdamW {
  constructor(parameters, rate, decay = 0.01, betas = [0.9, 0.999], tiny = 1e-8) {
    Object.assign(this, { parameters, rate, decay, betas, tiny, steps: 0 });
    this.means = parameters.map(({ data }) => new Float64Array(data.length));
    this.squares = parameters.map(({ data }) => new Float64Array(data.length));
  }

  step() {
    const [b1, b2] = this.betas, t = ++this.steps;
    this.parameters.forEach(({ data, grad }, at) => {
      const mean = this.means[at], square = this.squares[at];
      for (let i = 0; i < data.length; i++) {
        mean[i] = b1 * mean[i] + (1 - b1) * grad[i];
        square[i] = b2 * square[i] + (1 - b2) * grad[i] ** 2;
        const size = Math.sqrt(square[i] / (1 - b2 ** t)) + this.tiny;
        data[i] -= this.rate * (this.decay * data[i] + mean[i] / (1 - b1 ** t) / size);
      }
      grad.fill(0);
    });
  }
}
