// GPT in plain JavaScript, of the parts of `quantised_export.js`; the byte pairs before
// it, and the choice of a token after it.

// x Phi(x), with the error function of Abramowitz and Stegun, 7.1.26 (right to 2e-7)
function gelu(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x) / Math.SQRT2);
  const tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741
    + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-x * x / 2);
  return x / 2 * (x < 0 ? tail : 2 - tail);
}

// Rotary positions: every pair of a head's features turns by t / 10000^(2i/d_k)
function rotate(x, t, nHeads) {
  const size = x.length / nHeads;
  return x.map((value, i) => {
    const j = i % size, angle = t * 10000 ** (-(j - j % 2) / size);
    return value * Math.cos(angle) + (i % 2 ? x[i - 1] : -x[i + 1]) * Math.sin(angle);
  });
}

// Keys and values of each layer, none yet.
function emptyCaches(model) {
  return model.blocks.map(() => ({ keys: [], values: [] }));
}

// Read one token, keep its keys and values, and return the logits of the next.
function readToken(model, token, caches) {
  const { positions, n_heads: nHeads } = model.sizes, t = caches[0].keys.length;
  const turn = (x) => positions === "rotary" ? rotate(x, t, nHeads) : x;
  let x = model.embedding.weight[token];
  if (positions === "learned") x = add(x, model.positions.table[t]);
  model.blocks.forEach((block, layer) => {
    const asking = layerNorm(x, block.around_attention.norm), kept = caches[layer];
    kept.keys.push(turn(linear(asking, block.attention.key)));
    kept.values.push(linear(asking, block.attention.value));
    x = add(x, attention(turn(linear(asking, block.attention.query)), kept.keys,
      kept.values, block.attention, headsOf(model, "gpt", layer), {}).output);
    const hidden = linear(layerNorm(x, block.around_feed_forward.norm),
      block.feed_forward.wide).map(gelu);
    x = add(x, linear(hidden, block.feed_forward.narrow));
  });
  const normed = layerNorm(x, model.norm);
  return (model.head || model.embedding).weight.map((row) => dot(row, normed));
}

// A word with the space before it, a run of signs likewise, or white space: the chunks of
// `course_utils.data.chunks`, with Python's letters and white space.
const WORD = "\\p{L}\\p{N}_";
const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const CHUNK = new RegExp(
  ` ?[${WORD}]+| ?[^${WORD}${SPACE}]+|[${SPACE}]+(?![^${SPACE}])|[${SPACE}]+`, "gu");

// A text as ids: bytes, of which pairs are merged in the order learned.
function bytePairs(text, merges) {
  const made = new Map(merges.map(([left, right], i) => [`${left} ${right}`, 256 + i]));
  return (text.match(CHUNK) || []).flatMap((chunk) => {
    let ids = [...new TextEncoder().encode(chunk)];
    for (;;) {
      const next = Math.min(...ids.slice(1).map((id, i) =>
        made.get(`${ids[i]} ${id}`) ?? Infinity));
      if (next === Infinity) return ids;
      const [left, right] = merges[next - 256], merged = [];
      ids.forEach((id) => {
        if (merged.at(-1) === left && id === right) merged[merged.length - 1] = next;
        else merged.push(id);
      });
      ids = merged;
    }
  });
}

// softmax(logits / heat), then the k most probable, then the fewest that reach p:
// the order of the tokens, what each has now, how many may come and what they had.
function cutOdds(logits, heat, k, p) {
  const order = logits.map((_, i) => i).sort((a, b) => logits[b] - logits[a]);
  const top = logits[order[0]], heated = softmax(logits.map((z) => (z - top) / heat));
  const room = order.slice(0, k).reduce((sum, i) => sum + heated[i], 0);
  let before = 0, count = 0;
  while (count < k && (p === 1 || count === 0 || before < p - 1e-9)) {
    before += heated[order[count]] / room;
    count += 1;
  }
  const held = before * room, odds = logits.map(() => 0);
  order.slice(0, count).forEach((i) => { odds[i] = heated[i] / held; });
  return { order, odds, count, held };
}

// The token where a number from 0 to 1 falls, if each is as wide as its probability.
function drawToken({ order, odds }, number) {
  let left = number;
  return order.find((i) => (left -= odds[i]) < 0) ?? order[0];
}
