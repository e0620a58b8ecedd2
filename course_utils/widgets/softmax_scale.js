const widths = data.widths, last = widths[widths.length - 1];
const normal = ui.normals(7 + state.again);
const totals = Array(data.keys).fill(0), scoresAt = {};
for (let i = 1; i <= last; i++) {
  const query = normal();
  for (let j = 0; j < data.keys; j++) totals[j] += query * normal();
  if (widths.includes(i)) scoresAt[i] = totals.slice();
}
const scale = state.scaled ? Math.sqrt(state.d_k) : 1;
const scores = scoresAt[state.d_k].map((score) => score / scale);
const sum = (values) => values.reduce((a, b) => a + b, 0);

// left: the weights of this draw; right: the largest of them, its median over many
// draws against d_k with and without the scale, and a dot for this draw
const weights = ui.softmax(scores);
const colour = state.scaled ? "orange" : "blue";  // as in the chapter's figures
const h = ui.height - 72, narrow = ui.width < 420;
const split = (narrow ? 0.5 : 0.58) * ui.width, from = split + (narrow ? 26 : 34);
const wide = ui.width - from - 10;
ui.text(0, 14, "weight of each key", { "font-weight": 600 });
ui.bars(weights, { x: 0, y: 28, w: split - 16, h, fill: colour });
const most = Math.max(...weights), place = (weights.indexOf(most) + 0.5) / data.keys;
ui.text(Math.min(Math.max(place * (split - 16), 16), split - 32), 24 + h * (1 - most),
  most.toFixed(2), { "text-anchor": "middle" });
ui.text(from - 30, 14, "largest weight", { "font-weight": 600 });
[0, 0.5, 1].forEach((tick) => {
  const y = 28 + h * (1 - tick);
  ui.line(from, y, from + wide, y);
  ui.text(from - 6, y + 4, tick, { "text-anchor": "end", fill: "muted" });
});
const point = (d_k, weight) =>
  [from + wide * Math.log(d_k) / Math.log(last), 28 + h * (1 - weight)];
[false, true].forEach((scaled) => ui.curve(
  widths.map((d_k, i) => point(d_k, data[scaled ? "scaled" : "plain"][i])), {
    stroke: scaled ? "orange" : "blue", "stroke-dasharray": scaled ? "6 4" : undefined,
    "stroke-opacity": scaled === state.scaled ? 1 : 0.5 }));
ui.circle(...point(state.d_k, most), 6, { fill: colour });
const right = { "text-anchor": "end", fill: "muted" };
if (!narrow) ui.text(from, h + 44, 1, { fill: "muted" });
ui.text(from + wide, h + 44, `d_k = ${last}`, right);
ui.text(from + wide, 28 + 0.42 * h, "not scaled", { ...right, fill: "blue" });
ui.text(from + wide, 50 + h * (1 - data.scaled[widths.length - 1]), "scaled",
  { ...right, fill: "orange" });
ui.text(ui.width - 10, ui.height - 2, "line: median of 200 draws; dot: this draw", right);

// in words
const mean = sum(scores) / scores.length;
const spread = Math.sqrt(sum(scores.map((s) => (s - mean) ** 2)) / (scores.length - 1));
const entropy = -sum(weights.map((w) => w > 0 ? w * Math.log2(w) : 0));
const square = sum(weights.map((w) => w * w)), cube = sum(weights.map((w) => w ** 3));
const norm = Math.sqrt(Math.max(square - 2 * cube + square * square, 0));
ui.say(`d_k = ${state.d_k}, ${state.scaled ? "" : "not "}scaled: the scores have standard `
  + `deviation ${spread.toFixed(2)}. The largest weight is ${most.toFixed(3)}; the `
  + `entropy ${entropy.toFixed(2)} of ${Math.log2(data.keys).toFixed(2)} bits; the norm `
  + `of the softmax's Jacobian ${norm.toPrecision(2)}. `
  + (most > 0.9 ? "Saturated: one key takes all, and hardly any gradient is left."
    : most > 0.6 ? "One key takes most of the weight." : "Several keys share the weight."));
