// One draw of a query and its keys: their dot products are all that the steps need, for
// the query only ever moves along the keys. Key 0 is the wanted one.
const n = data.keys, steps = 40, normal = ui.normals(7 + state.again);
const start = Array(n).fill(0), products = start.map(() => Array(n).fill(0));
for (let m = 0; m < state.d_k; m++) {
  const query = normal(), key = start.map(() => normal());
  for (let i = 0; i < n; i++) {
    start[i] += query * key[i];
    for (let j = 0; j < n; j++) products[i][j] += key[i] * key[j];
  }
}
const sum = (values) => values.reduce((a, b) => a + b, 0);
const learn = (factor) => {
  let scores = start.map((score) => factor * score);
  const path = [];
  for (let step = 0; step <= steps; step++) {
    const a = ui.softmax(scores);
    path.push(a);
    const push = factor * factor * state.rate * a[0] * (1 - a[0]);
    scores = scores.map((score, j) =>
      score + push * (products[0][j] - sum(a.map((w, i) => w * products[i][j]))));
  }
  return path;
};
const paths = { scaled: learn(1 / Math.sqrt(state.d_k)), plain: learn(1) };
const mode = state.scaled ? "scaled" : "plain";
const weights = paths[mode][state.steps];

// left: the weights after the chosen steps; right: the wanted key's weight on the way
const colours = { scaled: "orange", plain: "blue" };  // as in the chapter's figures
const h = ui.height - 72, narrow = ui.width < 420;
const split = (narrow ? 0.46 : 0.54) * ui.width, from = split + (narrow ? 26 : 34);
const wide = ui.width - from - 10, bar = (split - 16) / n;
ui.text(0, 14, narrow ? "all weights" : "weight of each key", { "font-weight": 600 });
ui.bars(weights, { x: 0, y: 28, w: split - 16, h, fill: "grey" });
ui.rect(0.14 * bar, 28 + h * (1 - weights[0]), 0.72 * bar, h * weights[0], { fill: "green" });
ui.rect(0.14 * bar, 28 + h, 0.72 * bar, 4, { fill: "green" });
ui.text(0, h + 48, "wanted", { fill: "green" });
ui.text(from - 30, 14, narrow ? "wanted key" : "weight of the wanted key",
  { "font-weight": 600 });
[0, 0.5, 1].forEach((tick) => {
  const y = 28 + h * (1 - tick);
  ui.line(from, y, from + wide, y);
  ui.text(from - 6, y + 4, tick, { "text-anchor": "end", fill: "muted" });
});
const point = (step, weight) => [from + wide * step / steps, 28 + h * (1 - weight)];
["plain", "scaled"].forEach((label) => ui.curve(
  paths[label].map((a, step) => point(step, a[0])), {
    stroke: colours[label], "stroke-dasharray": label === "scaled" ? "6 4" : undefined,
    "stroke-opacity": label === mode ? 1 : 0.35 }));
ui.circle(...point(state.steps, weights[0]), 6, { fill: colours[mode] });
const right = { "text-anchor": "end", fill: "muted" };
ui.text(from, h + 44, 0, { fill: "muted" });
ui.text(from + wide, h + 44, `${steps} steps`, right);
const legend = { "text-anchor": "end", "font-weight": 600 };
ui.text(from + wide, h + 66, "scaled", { ...legend, fill: "orange" });
ui.text(from + wide - 60, h + 66, "not scaled", { ...legend, fill: "blue" });

// in words, with the norm of da/dq: factor times J K, whose square is trace(J K K^T J)
const factor = state.scaled ? 1 / Math.sqrt(state.d_k) : 1;
const J = weights.map((a, i) => weights.map((b, j) => (i === j ? a : 0) - a * b));
const square = sum(J.map((row, i) => sum(row.map((value, j) =>
  value * sum(J[i].map((other, k) => other * products[k][j]))))));
const gradient = factor * Math.sqrt(Math.max(square, 0));
const at = (label) => Math.round(100 * data[label]
  [data.widths.indexOf(state.d_k)][data.rates.indexOf(state.rate)]);
ui.say(`dₖ = ${state.d_k}, ${state.scaled ? "" : "not "}scaled, after ${state.steps} `
  + `steps of size ${state.rate}: the wanted key has weight ${weights[0].toFixed(2)}, the `
  + `largest weight is ${Math.max(...weights).toFixed(2)}, and |∂a/∂q| is `
  + `${gradient < 1e-9 ? "0" : gradient.toPrecision(2)}. Over 200 draws, ${steps} steps `
  + `of this size bring the wanted key above 0.9 in ${at("scaled")} % with the scale and `
  + `in ${at("plain")} % without.`);
