const tail = state.bias ? "biases" : "no biases";
const chosen = { norms: state.norm, attention: state.kv, "feed-forward": state.layer };
const first = { norms: "LayerNorm", attention: data.heads, "feed-forward": "GELU, two matrices" };
const parts = Object.keys(chosen), colours = ["gold", "blue", "orange"];
const number = (value) => Math.round(value).toLocaleString("en-US");
const show = (bytes) => bytes < 1e6 ? `${+(bytes / 1e3).toPrecision(3)} kB`
  : `${+(bytes / 1e6).toPrecision(3)} MB`;
const held = state.window === "none" ? state.n : Math.min(state.n, +state.window - 1);
const sum = (sizes) => sizes.reduce((a, b) => a + b, 0);
// the bytes that are kept, and the operations for one token more, which asks itself, too
const row = (label, from, end, kept) => ({
  label,
  sizes: parts.map((part) => data.counts[`${part}/${from[part]}/${end}`]),
  work: [...parts.slice(1).map((part) => data.work[`${part}/${from[part]}`]),
    data.work.key * (kept + 1)],
  cache: [2 * from.attention * data.d_head * kept * 2],
});
const old = row("chapter 13", first, "biases", state.n), own = row("yours", chosen, tail, held);

// ------------------------------------------- the block: its stream, and what is added to it
const wide = ui.width - 4, stream = 84, half = wide / 2, room = half - 16;
const [mark, label, side] = ui.width < 500 ? [6, 66, 20] : [9, 80, 26];
ui.line(0, stream, wide, stream, { stroke: "grey", "stroke-width": 6 });
const branch = (left) => {
  const right = left + room, name = state.norm.split(",")[0];
  ui.path(`M${left + 4} ${stream}V40H${right - 4}V${stream - 8}`,
    { fill: "none", stroke: "muted", "stroke-width": 1.5 });
  ui.circle(right - 4, stream, 8, { fill: "surface", stroke: "muted" });
  ui.path(`M${right - 8.5} ${stream}h9m-4.5 -4.5v9`, { fill: "none", stroke: "ink" });
  ui.rect(left, 28, label, 24, { fill: "surface", stroke: "gold", rx: 4, "stroke-width": 1.5,
    "stroke-dasharray": name === state.norm ? undefined : "4 3" });
  ui.text(left + label / 2, 44.5, name, { "text-anchor": "middle" })
    .style.fontSize = ui.width < 500 ? "11.5px" : "13px";
  return left + label + (room - label - 12) / 2; // the middle of the rest of the branch
};
let middle = branch(0);
const around = data.heads * mark + 6;
ui.rect(middle - around / 2, 18, around, 44, { fill: "surface", stroke: "blue", rx: 4,
  "stroke-width": 1.5 });
[["orange", data.heads], ["blue", state.kv], ["green", state.kv]].forEach(([fill, n], line) => {
  for (let i = 0; i < n; i++) ui.rect(middle + mark * (i - n / 2) + 1, 24 + 12 * line, mark - 2,
    8, { fill });
});
ui.text(middle, 12, "heads", { "text-anchor": "middle", fill: "muted" });
middle = branch(half);
const gated = state.layer !== first["feed-forward"], tall = gated ? 19 : 40;
const funnel = (x, y, high, small, large) => {
  const d = `M${x} ${y - small * high / 2}L${x + side} ${y - large * high / 2}V${
    y + large * high / 2}L${x} ${y + small * high / 2}Z`;
  ui.path(d, { fill: "surface" });
  ui.path(d, { fill: "orange", "fill-opacity": 0.35, stroke: "orange" });
};
(gated ? [29, 51] : [40]).forEach((y) => funnel(middle - side - 6, y, tall, 0.5, 1));
funnel(middle + 6, 40, gated ? 27 : 40, 1, 0.5);
if (gated) ui.text(middle, 44.5, "×", { "text-anchor": "middle" });
ui.text(middle, 12, gated ? "3 matrices" : "2 matrices", { "text-anchor": "middle",
  fill: "muted" });

// --------------------------------------------------------------- its numbers, as bars
const bars = (top, title, key, fills, tell) => {
  ui.text(0, top, title, { "font-weight": 600 });
  const most = Math.max(sum(old[key]), sum(own[key]));
  [old, own].forEach((each, i) => {
    const y = top + 20 + 40 * i;
    let x = 0;
    ui.text(0, y, `${each.label}: ${tell(sum(each[key]))}`);
    each[key].forEach((size, j) => {
      ui.rect(x, y + 6, Math.max(wide * size / most, 1), 14, { fill: fills[j] });
      x += wide * size / most;
    });
  });
};
bars(118, "parameters", "sizes", colours, number);
bars(226, "operations for the next token", "work", [...colours.slice(1), "green"], number);
bars(334, "cache of this layer, in 16 bits", "cache", ["green"], show);
let x = 0;
[...parts, "cache"].forEach((part, j) => {
  ui.rect(x, 428, 12, 12, { fill: [...colours, "green"][j] });
  ui.text(x + 17, 439, part);
  x += 30 + 6.6 * part.length;
});

const ratio = (key) => {
  const times = sum(old[key]) / sum(own[key]);
  return times === 1 ? (key === "cache" ? "as much as" : "as many as") : `${+(1 / times).toPrecision(2)} times`;
};
ui.say(`Your block has ${number(sum(own.sizes))} parameters, ${ratio("sizes")} chapter 13's. `
  + `For the next token after ${number(state.n)} it computes ${number(sum(own.work))} operations, `
  + `${ratio("work")} chapter 13's; ${number(own.work[2])} of them are with the keys and values `
  + `of ${number(held)} tokens in its cache and its own. The cache holds ${show(own.cache[0])}, `
  + `${ratio("cache")} chapter 13's.`);
