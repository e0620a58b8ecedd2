const n = data.words.length, last = n - 1;
const starts = {
  "nothing blocked": () => true,
  "causal": (i, j) => j <= i,
  "causal, off by one": (i, j) => j <= i + 1,
  "causal, inverted": (i, j) => j > i,
  "padding (last word)": (i, j) => j < last,
  "causal and padding": (i, j) => j <= i && j < last,
};
if (state.start !== state.startSeen) {
  state.mask = data.words.map((_, i) =>
    data.words.map((_, j) => Number(starts[state.start](i, j))));
  state.startSeen = state.start;
  state.row = Math.min(2, last);
  state.painted = false;
}

// the weights of every row, by the chosen method
const method = state.method;
const weigh = (scores, mask) => {
  if (method === "0 after the softmax")
    return ui.softmax(scores).map((weight, j) => weight * mask[j]);
  if (method.startsWith("−∞")) {
    if (!mask.some(Boolean)) return scores.map(() => 0);
    return ui.softmax(scores.map((score, j) => mask[j] ? score : -Infinity));
  }
  // near −1e9 a 32-bit float has steps of 64: the score is rounded away
  return ui.softmax(scores.map((score, j) =>
    mask[j] ? score : method.startsWith("0") ? 0 : -1e9));
};
const weights = data.scores.map((row, i) => weigh(row, state.mask[i]));
const sums = weights.map((row) => row.reduce((total, weight) => total + weight, 0));

// one table: blue is weight, a cross is blocked
const left = 12 + 8.5 * Math.max(...data.words.map((word) => word.length));
const wide = (ui.width - left - 52) / n, high = 46, top = 24;
ui.text(ui.width, 14, "row sum", { "text-anchor": "end", fill: "muted" });
ui.heatmap(weights, {
  x: left, y: top, w: wide * n, h: high * n, rows: data.words,
  press: (i, j) => {
    state.mask[i][j] = 1 - state.mask[i][j];
    state.row = i;
    state.painted = true;
  },
  tell: (i, j) => `${data.words[i]} asks ${data.words[j]}: `
    + `${state.mask[i][j] ? "open" : "blocked"}, weight ${weights[i][j].toFixed(2)}`,
});
const still = { "pointer-events": "none" };
weights.forEach((row, i) => {
  row.forEach((weight, j) => {
    const x = left + j * wide, y = top + i * high;
    if (!state.mask[i][j]) {
      ui.line(x + 5, y + 5, x + wide - 5, y + high - 5, { stroke: "muted", ...still });
      ui.line(x + 5, y + high - 5, x + wide - 5, y + 5, { stroke: "muted", ...still });
    }
    if (!state.mask[i][j] && weight < 5e-3) return;
    if (!state.mask[i][j]) ui.rect(x + wide / 2 - 17, y + high / 2 - 10, 34, 20,
      { fill: "surface", rx: 4, ...still });
    ui.text(x + wide / 2, y + high / 2 + 5, weight.toFixed(2), { ...still,
      "text-anchor": "middle", "font-weight": state.mask[i][j] ? 400 : 700,
      fill: state.mask[i][j] ? "ink" : "red", ...(state.mask[i][j] && ui.on(weight)) });
  });
  const whole = Math.abs(sums[i] - 1) < 5e-3;
  ui.text(ui.width, top + (i + 0.5) * high + 5, sums[i].toFixed(2), { fill:
    whole ? "green" : "red", "text-anchor": "end", "font-weight": whole ? 400 : 700 });
});
// right of this line lies the future
const steps = data.words.slice(0, last).flatMap((_, i) => [
  [left + (i + 1) * wide, top + i * high], [left + (i + 1) * wide, top + (i + 1) * high]]);
ui.curve(steps, { stroke: "orange", "stroke-width": 3, ...still });
data.words.forEach((word, j) => ui.text(left + (j + 0.5) * wide, top + n * high + 16,
  word.length * 7.5 > wide ? word.slice(0, 3) + "…" : word,
  { "text-anchor": "middle" }));

// in words
const every = state.mask.flat().length, open = state.mask.flat().filter(Boolean).length;
const despite = weights.flatMap((row, i) =>
  row.filter((weight, j) => !state.mask[i][j] && weight >= 5e-3)).length;
const future = weights.flatMap((row, i) =>
  row.filter((weight, j) => j > i && weight >= 5e-3)).length;
const short = sums.filter((sum) => sum > 0 && sum < 0.995).length;
const empty = data.words.filter((_, i) => !state.mask[i].some(Boolean));
const row = weights[state.row], asks = `“${data.words[state.row]}”`;
const seen = row.map((weight, j) => [weight, data.words[j]]).filter(([w]) => w >= 5e-3);
ui.say(`${state.start}${state.painted ? ", painted over" : ""}; a blocked pair gets `
  + `${method}. ${every - open} of ${every} pairs are blocked. ${asks} `
  + (seen.length ? `looks at ${seen.map(([weight, word]) =>
    `${word} ${weight.toFixed(2)}`).join(", ")}, in all ${sums[state.row].toFixed(2)}. `
    : "looks at nothing. ")
  + (despite ? `${despite} blocked pairs have a weight all the same. ` : "")
  + (short ? `${short} rows sum to less than one: the missing part still tells how `
    + "well the blocked keys matched. " : "")
  + (empty.length && method.startsWith("−∞") ? `${empty.length === 1 ? "One row has"
    : empty.length + " rows have"} nothing to see: 0 / 0, which must be made zeros. ` : "")
  + (future ? `${future} weights lie in the future, right of the line.`
    : "No weight lies in the future, right of the line."));
