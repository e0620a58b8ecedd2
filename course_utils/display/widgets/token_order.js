const n = data.words.length;
if (state.back !== state.backSeen) {
  state.order = data.words.map((word, i) => i);
  state.backSeen = state.back;
}
if (state.shuffle && state.shuffle !== state.shuffleSeen) {
  const normal = ui.normals(40 + state.shuffle), keys = data.words.map(() => normal());
  state.order = state.order.slice().sort((a, b) => keys[a] - keys[b]);
  state.shuffleSeen = state.shuffle;
}
const masked = state.layer === "with a causal mask";
const placed = state.layer === "with positions";

// the layer itself: row i of the result belongs to the token at place i
const times = (row, matrix) =>
  matrix[0].map((_, j) => row.reduce((sum, value, i) => sum + value * matrix[i][j], 0));
const attend = (order) => {
  const x = order.map((word, place) =>
    data.x[word].map((value, i) => value + (placed ? data.positions[place][i] : 0)));
  const [queries, keys, values] =
    [data.w_q, data.w_k, data.w_v].map((w) => x.map((row) => times(row, w)));
  return queries.map((query, i) => {
    const seen = masked ? keys.slice(0, i + 1) : keys;
    const scores = seen.map((key) =>
      key.reduce((sum, value, f) => sum + value * query[f], 0) / Math.sqrt(key.length));
    const weights = ui.softmax(scores);
    return values[0].map((_, f) =>
      weights.reduce((sum, weight, j) => sum + weight * values[j][f], 0));
  });
};
const first = attend(data.words.map((word, i) => i)), now = attend(state.order);
const mean = (rows) =>
  rows[0].map((_, f) => rows.reduce((sum, row) => sum + row[f], 0) / rows.length);
const moved = (a, b) => Math.max(...a.map((value, f) => Math.abs(value - b[f])));
const changes = state.order.map((word, place) => moved(now[place], first[word]));
const change = moved(mean(now), mean(first));

// one column for each place and one for the mean: the word, its output as bars
const wide = ui.width / (n + 1), top = 34, tall = 58, base = 74 + tall;
const column = (x, output, before, difference) => {
  const step = 0.8 * wide / output.length;
  ui.line(x + 0.06 * wide, base, x + 0.94 * wide, base, { stroke: "muted" });
  output.forEach((value, f) => {
    const left = x + 0.1 * wide + f * step, high = (v) => tall * Math.min(Math.abs(v), 1);
    const box = (v) => [left + 0.1 * step, v < 0 ? base : base - high(v), 0.8 * step,
      high(v)];
    ui.rect(...box(value), { fill: value < 0 ? "orange" : "blue", "fill-opacity": 0.75 });
    ui.rect(...box(before[f]), { fill: "none", stroke: "ink", "stroke-width": 1.5 });
  });
  const kept = difference < 1e-6;
  ui.text(x + wide / 2, base + tall + 20, kept ? "same" : `± ${difference.toFixed(2)}`,
    { "text-anchor": "middle", fill: kept ? "green" : "red",
      "font-weight": kept ? 400 : 650 });
};
state.order.forEach((word, place) => {
  const x = place * wide;
  ui.rect(x + 2, 2, wide - 4, top, { fill: "grid", rx: 6 });
  ui.text(x + wide / 2, 2 + top / 2 + 5, data.words[word],
    { "text-anchor": "middle", "font-weight": 650 });
  column(x, now[place], first[word], changes[place]);
  const handle = ui.rect(x + 2, 2, wide - 4, top,
    { fill: "transparent", stroke: "muted", rx: 6 });
  ui.active(handle, {
    key: `word-${word}`, at: [x + wide / 2, top / 2], step: wide,
    label: `${data.words[word]}, place ${place + 1} of ${n}; arrow keys move it`,
    drag: (to) => {
      const target = Math.min(Math.max(Math.floor(to / wide), 0), n - 1);
      const rest = state.order.filter((other) => other !== word);
      state.order = [...rest.slice(0, target), word, ...rest.slice(target)];
    },
  });
});
ui.text((n + 0.5) * wide, 2 + top / 2 + 5, "mean",
  { "text-anchor": "middle", "font-style": "italic" });
column(n * wide, mean(now), mean(first), change);
ui.text(2, ui.height - 4, "bars: output now; frames: output in the first order",
  { fill: "muted" });

const kept = changes.filter((difference) => difference < 1e-6).length;
const largest = Math.max(...changes), untouched = state.order.every((word, i) => word === i);
ui.say(`“${state.order.map((word) => data.words[word]).join(" ")}”, ${state.layer}: `
  + (untouched ? "the first order, to compare with; move a word." : (kept === n ? "every word kept its output; outputs follow their words"
    : `${kept} of ${n} words kept their output, the largest change is `
      + `${largest.toFixed(2)}; outputs do not just follow their words`)
  + `. The mean of the outputs ${change < 1e-6 ? "is the same as before"
    : `changed by up to ${change.toFixed(2)}`}.`));
