const kind = data.quantities[state.quantity], names = Object.keys(data.layers);
const colours = ["blue", "blue", "orange", "gold", "red"];
const dashes = [undefined, undefined, undefined, "2 4", "10 8"];
const broad = { "stroke-width": 8, "stroke-opacity": 0.35 };  // what lies on it is seen
const size = state.numbers === "16 bits" ? 2 : 4;
const cost = (name, n) => {
  const [a, b] = data.layers[name][kind], d = state.d;
  const one = {
    flops: a * n * d * d + b * n * n * d,
    training: (a * n * d + b * state.heads * n * n) * size,
    generation: (a * d + b * n * d) * size,
  }[kind];
  return one * state.layers;
};
const units = kind === "flops" ? ["", "thousand", "million", "10⁹", "10¹²", "10¹⁵", "10¹⁸"]
  : ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
const show = (value) => {
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${value >= 100 ? Math.round(value) : +value.toPrecision(2)} ${units[unit]}`;
};

// the curves, both axes logarithmic
const lengths = data.lengths, last = lengths[lengths.length - 1];
const every = names.flatMap((name) => lengths.map((n) => cost(name, n)));
const low = Math.floor(Math.log10(Math.min(...every)));
const high = Math.ceil(Math.log10(Math.max(...every)));
const left = 66, top = 14, wide = ui.width - left - 12, tall = ui.height - 196;
const x = (n) => left + wide * Math.log(n / lengths[0]) / Math.log(last / lengths[0]);
const y = (value) => top + tall * (high - Math.log10(value)) / (high - low);
const gap = Math.max(2, Math.ceil((high - low) / 4));
for (let power = low; power <= high; power += gap) {
  ui.line(left, y(10 ** power), left + wide, y(10 ** power));
  ui.text(left - 6, y(10 ** power) + 4, show(10 ** power),
    { "text-anchor": "end", fill: "muted" });
}
ui.line(x(state.n), top, x(state.n), top + tall, { stroke: "ink" });
names.forEach((_, i) => {  // naive attention is broad, the others lie on it
  const name = names[i];
  ui.curve(lengths.map((n) => [x(n), y(cost(name, n))]),
    { stroke: colours[i], "stroke-dasharray": dashes[i], ...(i === 0 && broad) });
  ui.circle(x(state.n), y(cost(name, state.n)), 5, { fill: colours[i] });
});
ui.text(left, top + tall + 18, `n = ${lengths[0]}`, { fill: "muted" });
ui.text(left + wide, top + tall + 18, `n = ${last.toLocaleString("en-US")}`,
  { "text-anchor": "end", fill: "muted" });

// the key, with the values at the chosen n
const below = top + tall + 46;
ui.text(0, below, `${state.quantity} at n = ${state.n.toLocaleString("en-US")}`, { "font-weight": 600 });
names.forEach((name, i) => {
  const row = below + 24 + 22 * i;
  ui.line(0, row - 4, 26, row - 4, { stroke: colours[i], "stroke-width": 3,
    "stroke-dasharray": dashes[i], ...(i === 0 && broad) });
  ui.text(34, row, name);
  ui.text(Math.min(ui.width - 4, 330), row, show(cost(name, state.n)),
    { "text-anchor": "end" });
});

// in words
const [naive, fused, gru, conv, space] = names.map((name) => cost(name, state.n));
const times = (a, b) => a >= b ? `${+(a / b).toPrecision(2)} times` : `${+(a / b).toPrecision(2)} of`;
const words = {
  flops: `Attention needs ${times(fused, gru)} the GRU's operations; they are equal at `
    + `n = d = ${state.d}, whatever the kernel. A fused kernel does the same products as `
    + "the naive way.",
  training: `Naive attention needs ${times(naive, fused)} the memory of fused attention, `
    + `because it stores tables of n × n weights for ${state.heads} `
    + `head${state.heads > 1 ? "s" : ""}. All others grow in proportion to n.`,
  generation: `The key-value cache is ${times(fused, gru)} the state of the GRU or the `
    + "state-space layer: 2n numbers for every one of theirs. Only the cache grows.",
}[kind];
ui.say(`n = ${state.n.toLocaleString("en-US")}, d = ${state.d}, ${state.layers} layer${state.layers > 1 ? "s" : ""}, `
  + `${state.numbers}, one sequence. ${words}`);
