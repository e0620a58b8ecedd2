// The model of a page, loaded once however many interactives ask for it: from the page
// itself, or from the file that the site's build moved it to. (A script and not JSON,
// because a page opened from a file may load no other.)
function loadModel(name, then, failed) {
  const models = window.courseModels ||= {}, mine = models[name] ||= { waiting: [] };
  if (mine.model) return then(mine.model);
  mine.waiting.push({ then, failed });
  if (mine.waiting.length > 1) return;
  const arrived = (packed) => {
    mine.model = readModel(packed);
    window.courseTransformer = { model: mine.model, encode, start, step, greedy, chain,
      stages };
    mine.waiting.splice(0).forEach((asked) => asked.then(mine.model));
  };
  const element = document.querySelector(`script[data-weights="${name}"]`);
  if (!element.dataset.src) return setTimeout(() => arrived(JSON.parse(element.textContent)));
  const file = document.createElement("script");
  file.src = element.dataset.src;
  file.onload = () => arrived(window.courseWeights[name]);
  file.onerror = () => mine.waiting.splice(0).forEach((asked) => asked.failed());
  document.head.append(file);
}

// Do something when an element first comes into view.
function onSight(element, act) {
  if (!window.IntersectionObserver) return act();
  const watch = new IntersectionObserver((seen) => {
    if (!seen.some((entry) => entry.isIntersecting)) return;
    watch.disconnect();
    act();
  });
  watch.observe(element);
}

// A table of weights in a box: all cells of one shade are one path, so that twenty-four
// tables are soon drawn. Returns { shade: path }, from 1 to 8 eighths of the full colour.
function shades(table, x, y, w, h, rows, columns) {
  const wide = w / columns, high = h / rows, paths = {};
  table.forEach((row, i) => row.forEach((weight, j) => {
    const level = Math.round(8 * weight);
    if (level) paths[level] = `${paths[level] || ""}M${(x + j * wide).toFixed(1)} ${
      (y + i * high).toFixed(1)}h${wide.toFixed(1)}v${high.toFixed(1)}h${-wide.toFixed(1)}z`;
  }));
  return paths;
}

// Every head of the model by its name: "cross-1-3" is the last of the second layer's.
function namesOfHeads({ n_layers: nLayers, n_heads: nHeads }) {
  return ["encoder", "decoder", "cross"].flatMap((kind) =>
    Array.from({ length: nLayers * nHeads }, (_, i) =>
      `${kind}-${Math.floor(i / nHeads)}-${i % nHeads}`));
}

// What a part of the model computes for one word, as [name, vector] from what it reads to
// what it returns. `box` is "encoder-embedding", "encoder-norm", "logits" and the like, or
// a part of a block: "cross-1" for its attention, "decoder-1-ff" for its feed-forward layer.
function stages(model, tokens, written, box, row, changes) {
  const BOS = 1, read = [BOS, ...written], seen = [], encoder = box.startsWith("encoder");
  const noted = box === "logits" ? "decoder-norm" : box;
  const told = { ...changes, note: (name, parts) => { if (name === noted) seen.push(parts); } };
  if (box.endsWith("embedding")) {
    const table = model[encoder ? "source_embedding" : "target_embedding"].weight;
    const token = (encoder ? tokens : read)[row], bare = changes[encoder ? "source" : "target"];
    const word = embed(token, row, table, true), sum = embed(token, row, table, bare);
    return [["√d E[token]", word], ["P[t]", position(row, word.length)],
      [bare ? "x, without P" : "x, their sum", sum]];
  }
  const { memory } = encode(model, tokens, told);
  if (!encoder) {
    const state = start(model, memory);
    read.forEach((token) => step(model, token, state, told));
  }
  const { x, normed, context, output } = seen[row], parts = [["x", x], ["norm(x)", normed]];
  if (box === "logits") return [["x", normed],
    ["logits E x", model.target_embedding.weight.map((line) => dot(line, normed))]];
  if (!output) return parts;
  const [kind, layer] = box.split("-");
  if (context) parts.push(["[C₁ … C_H]", context], ["times W_O", output]);
  else parts.push(["hidden", linear(normed, model[kind].blocks[layer].feed_forward.wide)
    .map((value) => Math.max(value, 0))], ["narrowed", output]);
  return [...parts, ["x + that", add(x, output)]];
}

// One head for one query, step by step: q·k, q·k / sqrt(d_k), the mask, the weights, and
// the context. `written` are the ids of the translation so far; row i of the decoder and
// of cross-attention asks what comes after the i-th of them, counted from the begin.
function chain(model, tokens, written, name, row, changes) {
  const BOS = 1, seen = [], kind = name.split("-")[0];
  const watch = (other, ...parts) => { if (other === name) seen.push(parts); };
  const { memory } = encode(model, tokens, { ...changes, watch });
  const state = start(model, memory);
  if (kind !== "encoder") [BOS, ...written].forEach((token) =>
    step(model, token, state, { ...changes, watch }));
  const [query] = seen[row], [, keys, values] = seen.at(-1);
  const products = keys.map((key) => dot(query, key));
  const scores = products.map((product) =>
    product * (changes.scale ?? 1) / Math.sqrt(query.length));
  const masked = keys.map((_, j) => kind === "decoder" && j > row);
  const weights = softmax(scores.map((score, j) => masked[j] ? -Infinity : score));
  const context = Array.from(query, (_, i) =>
    values.reduce((sum, value, j) => sum + weights[j] * value[i], 0));
  return { query, keys, values, products, scores, masked, weights, context };
}
