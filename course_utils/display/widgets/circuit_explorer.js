// One prediction: where the heads look from the chosen token, and what is named.
const run = data.runs[state.run], n = data.words.length, asker = state.token - 1;
const best = (row) => row.indexOf(Math.max(...row));
const left = 84, wide = (ui.width - left - 4) / n, tall = 22;
const layers = run.weights.length, last = run.weights[layers - 1];
const mean = (heads, at) => heads[0][at].map((_, j) =>
  heads.reduce((sum, head) => sum + head[at][j], 0) / heads.length);
const found = best(mean(last, asker));
const right = asker >= n / 2 && asker + 1 < n ? data.words[asker + 1] : null;

data.words.forEach((word, j) => {
  const x = left + j * wide, role = j === asker ? "orange" : j === found ? "green" : "grid";
  ui.rect(x + 1, 4, wide - 2, 26, { fill: role, rx: 4, "fill-opacity": 0.75 });
  ui.text(x + wide / 2, 22, word, { "text-anchor": "middle", "font-weight": 650 });
  const column = ui.rect(x, 0, wide, 34, { fill: "transparent" });
  column.style.cursor = "pointer";
  column.addEventListener("click", () => ui.set("token", Math.min(j + 1, n - 1)));
});
let y = 44;
const strip = (label, row) => {
  ui.text(0, y + 15, label, { fill: "muted" });
  row.forEach((weight, j) => ui.rect(left + j * wide + 1, y, wide - 2, tall - 4,
    { fill: "blue", "fill-opacity": Math.max(weight, 0.04) }));
  y += tall;
};
const at = (j) => `${data.words[j]} (${j + 1})`;
ui.text(0, y + 12, `Second layer, from ${at(asker)}`, { "font-weight": 650 });
y += 20;
last.forEach((head, h) => strip(`head 2.${h + 1}`, head[asker]));
y += 6;
ui.text(0, y + 12, `First layer, from ${at(found)}`, { "font-weight": 650 });
y += 20;
run.weights[0].forEach((head, h) => strip(`head 1.${h + 1}`, head[found]));

const chances = run.chances[asker], named = best(chances), base = y + 74;
const step = (ui.width - 8) / chances.length;
chances.forEach((chance, k) => {
  const high = 60 * chance, good = data.kinds[k] === right;
  ui.rect(4 + (k + 0.15) * step, base - high, 0.7 * step, high,
    { fill: good ? "green" : "orange" });
  ui.text(4 + (k + 0.5) * step, base + 17, data.kinds[k],
    { "text-anchor": "middle", "font-weight": good ? 650 : 400 });
});
ui.line(4, base, ui.width - 4, base, { stroke: "muted" });
let hits = 0;
for (let i = n / 2; i + 1 < n; i += 1)
  if (data.kinds[best(run.chances[i])] === data.words[i + 1]) hits += 1;
ui.say(`Switched off: ${state.run}. From ${at(asker)} the second layer looks most at `
  + `${at(found)}. It names ${data.kinds[named]} (${chances[named].toFixed(2)})`
  + (right === null ? "; there is no copy to go by."
    : `; right would be ${right}.`)
  + ` Right in the second copy: ${hits} of ${n / 2 - 1}.`);
