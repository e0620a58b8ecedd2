// Two bells over the same tokens: min(p, q) is accepted, the rest moves from red to blue.
const bell = (centre, spread) => {
  const raw = Array.from({ length: data.n }, (_, i) =>
    Math.exp(-0.5 * ((i + 1 - centre) / spread) ** 2));
  const total = raw.reduce((sum, x) => sum + x, 0);
  return raw.map((x) => x / total);
};
const p = bell(state.p, state.pWide), q = bell(state.q, state.qWide);
const left = 4, base = 196, tall = 170, wide = (ui.width - 2 * left) / data.n;
const top = Math.max(...p, ...q), high = (x) => tall * x / top;
let accepted = 0;
p.forEach((chance, i) => {
  const both = Math.min(chance, q[i]), more = Math.max(chance, q[i]) - both;
  const x = left + (i + 0.1) * wide, own = 0.8 * wide;
  accepted += both;
  ui.rect(x, base - high(both), own, high(both), { fill: "green" });
  ui.rect(x, base - high(both) - high(more), own, high(more),
    { fill: q[i] > chance ? "red" : "blue" });
  ui.text(left + (i + 0.5) * wide, base + 16, i + 1,
    { "text-anchor": "middle", fill: "muted" });
});
ui.line(left, base, ui.width - left, base, { stroke: "muted" });
const legend = [["green", "accepted"], ["red", "rejected"], ["blue", "drawn instead"]];
const step = ui.width / 3;
legend.forEach(([role, words], i) => {
  ui.rect(4 + i * step, base + 34, 14, 14, { fill: role, rx: 3 });
  ui.text(23 + i * step, base + 46, words);
});
let expected = 0;
for (let i = 0; i <= state.k; i += 1) expected += accepted ** i;
const share = (x) => x.toFixed(2);
ui.say(`Accepted: ${share(accepted)} of the draft's mass. Rejected, red: `
  + `${share(1 - accepted)}; the model's missing mass, blue, is as large. With `
  + `${state.k} drafted token${state.k > 1 ? "s" : ""} and these distributions at every `
  + `position, a pass writes ${share(expected)} tokens on average.`);
