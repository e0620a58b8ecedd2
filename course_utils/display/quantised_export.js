// The transformer of chapter 12 in plain JavaScript: the same equations, the same numbers.
// A vector is a Float32Array, a sequence a list of vectors, a matrix a list of its rows.
// `changes` says what is left out: { off: ["cross-1-3", …], source: true, target: true }
// leaves out a head and both sides' positions; {} leaves all in. With { scale: 4 } all
// scores are four times as large, with { means: { "cross-1": […], … } } a head that is off
// returns its mean, not nothing. watch(name, query, keys, values) is told what each head
// computes with, note(name, vectors) what each part of a block reads and returns.

// a · b
function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

// a + b: the residual sum
function add(a, b) {
  return a.map((value, i) => value + b[i]);
}

// W x + b, one row of W for each number that comes out
function linear(x, { weight, bias }) {
  return Float32Array.from(weight, (row, i) => dot(row, x) + bias[i]);
}

// exp(s_j) / sum of exp(s_j'); the largest is taken off first, so that nothing overflows
function softmax(scores) {
  const largest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - largest));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

// gamma (x - mean) / sqrt(variance + eps) + beta, over the features of one token
function layerNorm(x, { weight, bias }) {
  const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
  const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
  const spread = Math.sqrt(variance + 1e-5);
  return x.map((value, i) => weight[i] * (value - mean) / spread + bias[i]);
}

// W_2 max(0, W_1 x + b_1) + b_2
function feedForward(x, { wide, narrow }) {
  return linear(linear(x, wide).map((value) => Math.max(value, 0)), narrow);
}

// P[t, 2i] = sin(t / 10000^(2i/d)), P[t, 2i+1] = cos of the same angle
function position(place, width) {
  return Float32Array.from({ length: width }, (_, i) => {
    const angle = place * 10000 ** (-(i - i % 2) / width);
    return i % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

// sqrt(d) E[token] + P[place]
function embed(token, place, table, unplaced) {
  const word = table[token].map((value) => Math.sqrt(table[token].length) * value);
  return unplaced ? word : add(word, position(place, word.length));
}

// One query asks all keys: C_h = softmax(q_h K_h^T / sqrt(d_k)) V_h for every head h,
// then [C_1, …, C_H] W_O. A head that is off brings nothing, or its mean.
function attention(query, keys, values, layer, heads, changes) {
  const size = query.length / heads.length, context = new Float32Array(query.length);
  const weights = heads.map((name, h) => {
    const own = (x) => x.subarray(h * size, (h + 1) * size); // the features of head h
    const asked = own(query), scale = (changes.scale ?? 1) / Math.sqrt(size);
    const row = softmax(keys.map((key) => dot(asked, own(key)) * scale));
    if (changes.watch) changes.watch(name, asked, keys.map(own), values.map(own));
    if (changes.off && changes.off.includes(name)) {
      const means = changes.means && changes.means[name.slice(0, -2)];
      if (means) context.set(means.slice(h * size, (h + 1) * size), h * size);
      return row;
    }
    values.forEach((value, j) => own(value).forEach((v, i) => {
      context[h * size + i] += row[j] * v;
    }));
    return row;
  });
  return { output: linear(context, layer.output), weights, context };
}

// Tell who asked for it what a part of a block reads (x, then its norm) and returns.
function note(changes, name, vectors) {
  if (changes.note) changes.note(name, vectors);
}

// x + attention(norm(x)), then x + feed-forward(norm(x)): every token asks every token
function encoderBlock(stream, block, heads, changes) {
  const asking = stream.map((x) => layerNorm(x, block.around_attention.norm));
  const keys = asking.map((x) => linear(x, block.attention.key));
  const values = asking.map((x) => linear(x, block.attention.value));
  const found = asking.map((x) => attention(linear(x, block.attention.query), keys, values,
    block.attention, heads, changes));
  asking.forEach((normed, i) => note(changes, heads[0].slice(0, -2),
    { x: stream[i], normed, ...found[i] }));
  return {
    stream: stream.map((x, i) => think(add(x, found[i].output), block, heads, changes)),
    weights: found.map((row) => row.weights), // [query][head][key]
  };
}

// x + feed-forward(norm(x)), each token alone: the second half of every block
function think(x, block, heads, changes) {
  const normed = layerNorm(x, block.around_feed_forward.norm);
  const output = feedForward(normed, block.feed_forward);
  note(changes, `${heads[0].slice(0, -2)}-ff`, { x, normed, output });
  return add(x, output);
}

// The new token looks back at what is written, across at the source, and thinks. Its own
// keys and values join those that are kept: words that come later will ask for them.
function decoderBlock(x, block, kept, memory, heads, changes) {
  const asking = layerNorm(x, block.around_attention.norm);
  kept.keys.push(linear(asking, block.attention.key));
  kept.values.push(linear(asking, block.attention.value));
  const back = attention(linear(asking, block.attention.query), kept.keys, kept.values,
    block.attention, heads.decoder, changes);
  note(changes, heads.decoder[0].slice(0, -2), { x, normed: asking, ...back });
  x = add(x, back.output);
  const normed = layerNorm(x, block.around_cross_attention.norm);
  const across = attention(linear(normed, block.cross_attention.query), memory.keys,
    memory.values, block.cross_attention, heads.cross, changes);
  note(changes, heads.cross[0].slice(0, -2), { x, normed, ...across });
  x = think(add(x, across.output), block, heads.decoder, changes);
  return { x, own: back.weights, cross: across.weights };
}

// The names of a layer's heads: "cross-1-3" is the last of the second layer's.
function headsOf(model, kind, layer) {
  return Array.from({ length: model.sizes.n_heads }, (_, h) => `${kind}-${layer}-${h}`);
}

// Read the source: one vector for each of its tokens, and the weights of every layer.
function encode(model, tokens, changes) {
  let stream = tokens.map((token, place) =>
    embed(token, place, model.source_embedding.weight, changes.source));
  const maps = model.encoder.blocks.map((block, layer) => {
    const done = encoderBlock(stream, block, headsOf(model, "encoder", layer), changes);
    stream = done.stream;
    return done.weights;
  });
  const memory = stream.map((x) => layerNorm(x, model.encoder.norm));
  memory.forEach((normed, i) => note(changes, "encoder-norm", { x: stream[i], normed }));
  return { memory, maps };
}

// Before the first word: each layer's keys and values of the source, and none yet of its own.
function start(model, memory) {
  return model.decoder.blocks.map(({ cross_attention }) => ({
    memory: {
      keys: memory.map((x) => linear(x, cross_attention.key)),
      values: memory.map((x) => linear(x, cross_attention.value)),
    },
    kept: { keys: [], values: [] },
  }));
}

// Read one token of the target: the scores of every word that may come next are the
// products of its vector with the rows of the table that reads words, E x.
function step(model, token, state, changes) {
  const own = [], cross = [], table = model.target_embedding.weight;
  let x = embed(token, state[0].kept.keys.length, table, changes.target);
  model.decoder.blocks.forEach((block, layer) => {
    const heads = { decoder: headsOf(model, "decoder", layer),
      cross: headsOf(model, "cross", layer) };
    const done = decoderBlock(x, block, state[layer].kept, state[layer].memory, heads,
      changes);
    x = done.x;
    own.push(done.own);
    cross.push(done.cross);
  });
  const normed = layerNorm(x, model.decoder.norm);
  note(changes, "decoder-norm", { x, normed });
  return { logits: table.map((row) => dot(row, normed)), own, cross };
}

// Write one word after the other, each the most probable one, until the end is written.
function greedy(model, tokens, changes, most = 48) {
  const BOS = 1, EOS = 2, { memory, maps } = encode(model, tokens, changes);
  const state = start(model, memory), steps = [];
  let token = BOS;
  while (token !== EOS && steps.length < most) {
    const done = step(model, token, state, changes);
    token = done.logits.indexOf(Math.max(...done.logits));
    steps.push({ ...done, token });
  }
  return { encoder: maps, steps };
}

// From bytes to weights: w_ij = s_i q_ij. The name "encoder.norm.bias" becomes a place.
function readModel(packed) {
  const bytes = Uint8Array.from(atob(packed.bytes), (letter) => letter.charCodeAt(0));
  const floats = new Float32Array(bytes.buffer, 0, packed.n_floats);
  const wholes = new Int8Array(bytes.buffer, 4 * packed.n_floats);
  const model = { sizes: packed.sizes };
  for (const { name, shape, floats: first, bytes: at } of packed.tensors) {
    const numbers = floats.subarray(first, first + shape[0]);
    const row = (i) => Float32Array.from(
      wholes.subarray(at + i * shape[1], at + (i + 1) * shape[1]), (q) => q * numbers[i]);
    const path = name.split("."), last = path.pop();
    const place = path.reduce((parent, part, i) =>
      (parent[part] ??= /^\d+$/.test(path[i + 1]) ? [] : {}), model);
    place[last] = shape.length === 1 ? numbers : Array.from(numbers, (_, i) => row(i));
  }
  for (const stack of [model, model.encoder, model.decoder]) {
    if (stack?.blocks) stack.blocks.forEach((block) => splitHeads(block));
  }
  return model;
}

// One matrix holds the rows of queries, keys and values; give each its name.
function splitHeads(block) {
  for (const layer of [block.attention, block.cross_attention]) {
    if (!layer) continue;
    const { weight, bias } = layer.qkv, size = bias.length / 3;
    ["query", "key", "value"].forEach((name, i) => {
      layer[name] = { weight: weight.slice(i * size, (i + 1) * size),
        bias: bias.subarray(i * size, (i + 1) * size) };
    });
  }
}
