// Two tables for one sentence: rows are words of the translation, columns of the source.
const shown = data.sentences[state.sentence], n = shown.target.length;
if (state.seen !== state.sentence) Object.assign(state, { seen: state.sentence, row: 0 });
const sides = [state.left, state.right].map((label) => ({ label,
  table: shown.tables[label].map((row) => row.map((weight) => weight / 100)) }));
const linked = (links, j, t) => links.some(([a, b]) => a === j && b === t);
const best = (row) => row.indexOf(Math.max(...row));
const word = (j) => shown.source[j] === undefined ? "end" : shown.source[j];
// the end is no word and has no link: the count leaves its column out
const words = (row) => row.slice(0, shown.source.length);
const agree = ({ table }) =>
  table.filter((row, t) => linked(shown.possible, best(words(row)), t)).length;

const narrow = ui.width < 540, gap = 14, wide = narrow ? ui.width : (ui.width - gap) / 2;
const room = Math.min(10 + 7.3 * Math.max(...shown.target.map((w) => w.length)), 92);
sides.forEach(({ label, table }, side) => {
  const left = room + (narrow ? 0 : side * (wide + gap));
  const top = data.top + (narrow ? side * (data.top + n * data.row + 16) : 0);
  const step = Math.min((wide - room - 12) / table[0].length, 34);
  ui.text(left - room, top - data.top + 14, label, { "font-weight": 650 });
  ui.text(left - room, top - data.top + 32, `${agree({ table })} of ${n}: the word looked at `
    + "most is linked", { fill: "muted" });
  table[0].forEach((_, j) => {
    const x = left + (j + 0.5) * step + 4;
    ui.text(x, top - 6, word(j), { transform: `rotate(-55 ${x} ${top - 6})` });
  });
  table.forEach((row, t) => {
    const y = top + t * data.row;
    ui.text(left - 6, y + 0.7 * data.row, shown.target[t], { "text-anchor": "end",
      "font-weight": t === state.row ? 650 : 400 });
    row.forEach((weight, j) => {
      ui.rect(left + j * step, y, step - 1, data.row - 1, { "fill-opacity":
        Math.max(weight, 0.03) });
      if (state.gold && linked(shown.possible, j, t)) ui.rect(left + j * step + 1, y + 1,
        step - 3, data.row - 3, { fill: "none", stroke: "orange", "stroke-width": 2.5,
          "stroke-dasharray": linked(shown.sure, j, t) ? undefined : "4 3" });
    });
    const line = ui.rect(left - room, y, room + step * row.length, data.row,
      { fill: "transparent", stroke: t === state.row ? "orange" : "none" });
    ui.active(line, { key: `row-${side}-${t}`, press: () => { state.row = t; },
      label: `${shown.target[t]}, ${label}: press to read where it looks` });
  });
});

const told = ({ label, table }) => {
  const row = table[state.row], j = best(row);
  return `“${word(j)}” (${row[j].toFixed(2)}, ${label})`;
};
const gold = shown.source.filter((_, j) => linked(shown.possible, j, state.row));
ui.say(`In order to write “${shown.target[state.row]}” they look most at ${
  sides.map(told).join(" and ")}.`
  + (state.gold ? ` The grammar links it to ${gold.length
    ? gold.map((w) => `“${w}”`).join(" and ") : "no word"}.` : "")
  + ` Of ${n} words, ${sides.map((side) => agree(side)).join(" and ")} look most at a word `
  + "that the grammar links to them; the end is no word and is not counted.");
