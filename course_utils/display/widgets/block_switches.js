const tail = state.bias ? "biases" : "no biases";
const chosen = { norms: state.norm, attention: state.kv, "feed-forward": state.layer };
const first = { norms: "LayerNorm", attention: data.heads, "feed-forward": "GELU, two matrices" };
const parts = Object.keys(chosen), colours = ["gold", "blue", "orange"];
const number = (value) => Math.round(value).toLocaleString("en-US");
const show = (bytes) => bytes < 1e6 ? `${+(bytes / 1e3).toPrecision(3)} kB`
  : `${+(bytes / 1e6).toPrecision(3)} MB`;
const held = state.window === "none" ? state.n : Math.min(state.n, +state.window - 1);
const bytes = (kv, tokens) => 2 * kv * data.d_head * tokens * 2;
const rows = [
  ["chapter 13", first, "biases", bytes(data.heads, state.n)],
  ["yours", chosen, tail, bytes(state.kv, held)],
].map(([label, from, end, cache]) => ({
  label, cache, sizes: parts.map((part) => data.counts[`${part}/${from[part]}/${end}`]),
}));
const sum = (sizes) => sizes.reduce((a, b) => a + b, 0);
const wide = ui.width - 4;
const most = Math.max(...rows.map((row) => sum(row.sizes)));

ui.text(0, 16, "parameters of one block", { "font-weight": 600 });
rows.forEach((row, i) => {
  let x = 0;
  const y = 40 + 44 * i;
  ui.text(0, y, `${row.label}: ${number(sum(row.sizes))}`);
  row.sizes.forEach((size, j) => {
    ui.rect(x, y + 7, wide * size / most, 16, { fill: colours[j] });
    x += wide * size / most;
  });
});
let x = 0;
parts.forEach((part, j) => {
  ui.rect(x, 126, 12, 12, { fill: colours[j] });
  ui.text(x + 17, 137, part);
  x += 34 + 8 * part.length;
});

ui.text(0, 170, "cache of one layer, in 16 bits",
  { "font-weight": 600 });
rows.forEach((row, i) => {
  const y = 194 + 44 * i;
  ui.text(0, y, `${row.label}: ${show(row.cache)}`);
  ui.rect(0, y + 7, Math.max(2, wide * row.cache / rows[0].cache), 16, { fill: "green" });
});

const [old, own] = rows;
const times = old.cache / own.cache;
ui.say(`Your block has ${number(sum(own.sizes))} parameters, chapter 13's `
  + `${number(sum(old.sizes))}. Its cache holds ${show(own.cache)}, `
  + (times === 1 ? "as much as chapter 13's." : `1/${+times.toPrecision(3)} of chapter 13's.`));
