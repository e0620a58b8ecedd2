const n = data.scores.length;
const weights = ui.softmax(data.scores.map((score) => score / state.tau));
if (state.tau !== state.tauSeen || state.clear !== state.clearSeen) {
  state.counts = Array(n).fill(0);
  state.drawSeen = state.draw;
  state.tauSeen = state.tau;
  state.clearSeen = state.clear;
}
// A draw by the weights: the key whose exponential clock, of rate weight, rings first.
if (state.draw > state.drawSeen) {
  const normal = ui.normals(100 * state.draw + Math.round(10 * state.tau));
  for (let i = 0; i < data.per * (state.draw - state.drawSeen); i++) {
    const rings = weights.map((weight) => (normal() ** 2 + normal() ** 2) / (2 * weight));
    state.counts[rings.indexOf(Math.min(...rings))] += 1;
  }
  state.drawSeen = state.draw;
}
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const drawn = sum(state.counts), shares = state.counts.map((c) => drawn ? c / drawn : 0);
const soft = sum(weights.map((weight, i) => weight * data.values[i]));
const mean = sum(shares.map((share, i) => share * data.values[i]));

// above: for each key its weight (filled) and its share of the draws (frame)
const h = 118, top = 26, base = top + h, wide = ui.width / n;
ui.text(0, 13, "weight of each key", { fill: "blue", "font-weight": 600 });
ui.text(ui.width, 13, ui.width < 380 ? "frame: the draws" : "frame: share of the draws",
  { "text-anchor": "end", fill: "orange", "font-weight": 600 });
ui.line(0, base, ui.width, base, { stroke: "muted" });
weights.forEach((weight, i) => {
  const x = (i + 0.2) * wide, w = 0.6 * wide;
  ui.rect(x, base - h * weight, w, h * weight, { fill: "blue", "fill-opacity": 0.75 });
  if (drawn) ui.rect(x - 3, base - h * shares[i], w + 6, h * shares[i],
    { fill: "none", stroke: "orange", "stroke-width": 2 });
  ui.text((i + 0.5) * wide, base - h * Math.max(weight, shares[i]) - 5,
    weight.toFixed(2), { "text-anchor": "middle" });
  ui.text((i + 0.5) * wide, base + 17, `value ${data.values[i]}`,
    { "text-anchor": "middle" });
});

// below: the scale of the values, with the soft answer and the mean of the hard ones
const low = Math.min(...data.values) - 1, high = Math.max(...data.values) + 1;
const at = (value) => 14 + (ui.width - 28) * (value - low) / (high - low);
const line = base + 66;
ui.line(at(low), line, at(high), line, { stroke: "muted" });
data.values.forEach((value, i) => {
  ui.line(at(value), line - 5, at(value), line + 5, { stroke: "muted" });
  ui.text(at(value), line + 20, value, { "text-anchor": "middle", fill: "muted" });
  if (state.counts[i]) ui.circle(at(value), line, 3 + 9 * Math.sqrt(shares[i]),
    { fill: "orange", "fill-opacity": 0.45 });
});
ui.line(at(soft), line - 24, at(soft), line + 4, { stroke: "blue", "stroke-width": 3 });
const left = at(soft) > ui.width / 2;
ui.text(at(soft) + (left ? -6 : 6), line - 14, `soft answer ${soft.toFixed(2)}`,
  { "text-anchor": left ? "end" : "start", fill: "blue", "font-weight": 600 });
if (drawn) {
  ui.line(at(mean), line - 4, at(mean), line + 30, { stroke: "orange", "stroke-width": 3 });
  const turn = at(mean) > ui.width / 2;
  ui.text(at(mean) + (turn ? -6 : 6), line + 40, `mean of ${drawn} hard: ${mean.toFixed(2)}`,
    { "text-anchor": turn ? "end" : "start", fill: "orange", "font-weight": 600 });
}

const most = Math.max(...weights), best = data.values[weights.indexOf(most)];
ui.say(`Temperature ${state.tau}: the largest weight is ${most.toFixed(2)}, the soft answer `
  + `${soft.toFixed(2)}. `
  + (drawn ? `Of ${drawn} hard choices ${state.counts[weights.indexOf(most)]} took the `
    + `likeliest key, value ${best}; their mean is ${mean.toFixed(2)}. `
    : "No hard choice has been drawn yet. ")
  + (most > 0.995 ? "Soft and hard are the same here: one key has it all."
    : most < 1.35 / n ? "The weights are nearly equal: soft is the plain mean, hard is dice."
      : "Soft gives a mixture that no key holds; hard gives one key's value each time."));
