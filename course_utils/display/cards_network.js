// The cards of chapter 10, and the network that answers two questions about each: which
// letter lies before me, and which letter has the other card of my colour?

const COLOURS = 6, LETTERS = 8, CARDS = 2 * COLOURS, IGNORE = -100;

// Random numbers from a seed, the same in every browser (mulberry32, Box-Muller).
function randomNumbers(seed) {
  let s = seed >>> 0;
  const uniform = () => {
    s = (s + 0x6d2b79f5) | 0;
    let t = Math.imul(s ^ (s >>> 15), 1 | s);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform()))
    * Math.cos(2 * Math.PI * uniform());
  return { uniform, normal, below: (n) => Math.floor(n * uniform()) };
}

// Rows of cards: each colour twice, in a random order, and a letter on each card.
function drawCards(random, batch) {
  const colours = [], letters = [], labels = [];
  for (let row = 0; row < batch; row++) {
    const colour = Array.from({ length: CARDS }, (_, i) => i % COLOURS);
    for (let i = CARDS - 1; i > 0; i--) {
      const j = random.below(i + 1);
      [colour[i], colour[j]] = [colour[j], colour[i]];
    }
    const letter = colour.map(() => random.below(LETTERS));
    colours.push(colour);
    letters.push(letter);
    colour.forEach((own, i) => {
      const partner = colour.findIndex((other, j) => other === own && j !== i);
      labels.push(i ? letter[i - 1] : IGNORE, letter[partner]);
    });
  }
  return { colours, letters, labels };
}

// As PyTorch starts them: tables of normal numbers, layers uniform within 1 / sqrt(width).
function makeNetwork(random, width = 32) {
  const filled = (shape, draw) => {
    const tensor = new Tensor(shape);
    tensor.data.forEach((_, i) => { tensor.data[i] = draw(); });
    return tensor;
  };
  const table = (rows) => filled([rows, width], () => 0.3 * random.normal());
  const edge = 1 / Math.sqrt(width);
  const layer = (...shape) => filled(shape, () => edge * (2 * random.uniform() - 1));
  return {
    colour: table(COLOURS), letter: table(LETTERS), position: table(CARDS),
    qkv: layer(width, 3 * width), qkvBias: layer(3 * width),
    output: layer(width, width), outputBias: layer(width),
    readout: layer(width, 2 * LETTERS), readoutBias: layer(2 * LETTERS),
  };
}

// One layer of multi-head attention and one linear read-out.
function forward(p, { colours, letters }, { heads, scaled, positions, causal }) {
  const width = p.output.shape[0], d = width / heads;
  let x = add(embed(p.colour, colours), embed(p.letter, letters));
  if (positions) x = add(x, p.position);
  const qkv = add(matmul(x, p.qkv), p.qkvBias);
  const [queries, keys, values] = [0, 1, 2].map((part) =>
    splitHeads(qkv, heads, part * width, (part + 1) * width));
  const scores = scale(matmul(queries, keys, true), scaled ? 1 / Math.sqrt(d) : 1);
  const weights = softmax(scores, causal);  // (batch, head, query, key)
  const context = mergeHeads(matmul(weights, values));
  const mixed = add(matmul(context, p.output), p.outputBias);
  return { logits: add(matmul(mixed, p.readout), p.readoutBias), weights };
}

// Everything that one training needs; `step` makes one, and returns its loss.
function startTraining({ seed = 0, rate = 0.01, batch = 32, width = 32, ...switches }) {
  const random = randomNumbers(1 + seed), network = makeNetwork(random, width);
  const optimiser = new AdamW(Object.values(network), rate);
  const exam = drawCards(randomNumbers(1_000_000 + seed), 100);
  const training = { network, optimiser, exam, switches, steps: 0 };
  training.gradients = (cards) => {
    const { logits } = forward(network, cards, switches);
    const loss = crossEntropy(logits, cards.labels, LETTERS);
    backward(loss);
    return loss.data[0];
  };
  training.step = () => {
    const loss = training.gradients(drawCards(random, batch));
    optimiser.step();
    training.steps += 1;
    return loss;
  };
  return training;
}

// Answers to rows that no training has seen: the share that is right about the card
// before, about the partner, about both; and the weights of every head on one row.
function examine({ network, exam, switches }, shown = 0) {
  const { logits, weights } = forward(network, exam, switches);
  const right = exam.labels.map((label, i) => {
    const own = logits.data.subarray(i * LETTERS, (i + 1) * LETTERS);
    return own.indexOf(Math.max(...own)) === label;
  });
  const cards = right.map((_, i) => i).filter((i) => i % 2 === 0 && exam.labels[i] >= 0);
  const share = (passes) => cards.filter(passes).length / cards.length;
  const [, heads, n] = weights.shape, from = shown * heads * n * n;
  return {
    before: share((i) => right[i]), partner: share((i) => right[i + 1]),
    both: share((i) => right[i] && right[i + 1]),
    weights: Array.from({ length: heads }, (_, h) => Array.from({ length: n }, (_, q) =>
      Array.from(weights.data.subarray(from + (h * n + q) * n, from + (h * n + q + 1) * n)))),
    colours: exam.colours[shown], letters: exam.letters[shown],
  };
}

// Trains in slices, so that a message is heard between two of them. It stands in a worker,
// and in the page itself where there are none; `post` is told what was learned.
function trainer(post, most = 600) {
  let training, running = false, losses = [];
  const report = () => post({ steps: training.steps, losses: losses.splice(0), running,
    ...examine(training) });
  const slice = () => {
    if (!running) return;
    const end = Date.now() + 100;
    while (Date.now() < end && training.steps < most) losses.push(training.step());
    running = training.steps < most;
    report();
    if (running) setTimeout(slice);
  };
  const actions = {
    start: (settings) => {
      running = false;
      losses = [];
      training = startTraining(settings);
      report();
    },
    step: () => {
      running = false;
      if (training.steps < most) losses.push(training.step());
      report();
    },
    run: () => { if (!running) { running = true; slice(); } },
    pause: () => { running = false; report(); },
  };
  return ({ what, settings }) => actions[what](settings);
}
