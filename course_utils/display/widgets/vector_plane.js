const vectors = state.vectors || (state.vectors = data.vectors.map((v) => v.slice()));
const asks = vectors[state.asks], dot = (a, b) => a[0] * b[0] + a[1] * b[1];
const size = (a) => Math.max(Math.hypot(a[0], a[1]), 1e-9);
const cosine = state.score === "cosine";
const scores = vectors.map((v) => dot(asks, v) / (cosine ? size(asks) * size(v) : 1));
const weights = ui.softmax(scores);
const mixed = [0, 1].map((axis) =>
  weights.reduce((sum, weight, j) => sum + weight * vectors[j][axis], 0));

// the plane, three units to each side, and the weights as bars beside it, or below
const narrow = ui.width < 480, reach = 3;
const side = narrow ? Math.min(ui.width, ui.height - 130)
  : Math.min(ui.height - 8, ui.width * 0.58), unit = side / (2 * reach);
const x0 = side / 2, y0 = side / 2 + 4;
const place = ([a, b]) => [x0 + a * unit, y0 - b * unit];
ui.rect(0, 4, side, side, { fill: "transparent", stroke: "grid" });
ui.line(0, y0, side, y0);
ui.line(x0, 4, x0, side + 4);
vectors.forEach((vector, j) => {
  const [x, y] = place(vector), [ax, ay] = place(asks);
  ui.line(x0, y0, x, y, { stroke: "muted" });
  if (j !== state.asks) ui.line(ax, ay, x, y,
    { stroke: "orange", "stroke-width": 0.5 + 11 * weights[j], "stroke-opacity": 0.65 });
});
// where it lands: larger than a token, and below those that stand there
ui.circle(...place(mixed), 15, { fill: "none", stroke: "orange", "stroke-width": 3,
  "pointer-events": "none" });
const clamp = (value) => Math.max(-reach, Math.min(reach, value));
vectors.forEach((vector, j) => {
  const [x, y] = place(vector);
  const dotted = ui.circle(x, y, 12, { fill: j === state.asks ? "orange" : "blue" });
  ui.text(x, y + 4, `x${j + 1}`, { fill: "surface", "text-anchor": "middle",
    "pointer-events": "none", "font-size": 12 });
  ui.active(dotted, { key: `vector-${j}`, at: [x, y], step: unit / 5,
    label: `x${j + 1} at ${vector[0].toFixed(1)}, ${vector[1].toFixed(1)}`,
    press: () => { ui.set("asks", j); },
    drag: (left, top) => {
      vectors[j] = [clamp((left - x0) / unit), clamp((y0 - top) / unit)];
      state.vectors = vectors;
    } });
});
const from = narrow ? 0 : side + 30, below = narrow ? side + 10 : 0;
ui.text(from, below + 16, `weights of x${state.asks + 1}`, { "font-weight": 600 });
ui.bars(weights, { x: from, y: below + 34, w: ui.width - from - 4,
  h: ui.height - below - 70, fill: "orange", labels: weights.map((_, j) => `x${j + 1}`) });

// in words
const most = weights.indexOf(Math.max(...weights));
ui.say(`x${state.asks + 1} asks, by ${state.score}: `
  + weights.map((weight, j) => `x${j + 1} ${weight.toFixed(2)}`).join(", ")
  + `. It looks most at ${most === state.asks ? "itself" : `x${most + 1}`} and becomes `
  + `(${mixed.map((value) => value.toFixed(2)).join(", ")}).`);
