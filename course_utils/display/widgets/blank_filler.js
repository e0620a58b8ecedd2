// One sentence with a blank, and two lists of what may stand there.
const one = data.sentences[state.sentence - 1], n = one.words.length, at = state.blank - 1;
const truth = one.words[at];
let x = 0, line = 0;
one.words.forEach((word, j) => {
  const wide = 8.4 * word.length + 9;
  if (x + wide > ui.width) { x = 0; line += 1; }
  const y = 2 + 28 * line;
  ui.rect(x, y, wide - 2, 24, { fill: j === at ? "orange" : "grid", rx: 4,
    "fill-opacity": 0.75 });
  ui.text(x + wide / 2 - 1, y + 17, j === at ? "___" : word, { "text-anchor": "middle" });
  const button = ui.rect(x, y, wide, 28, { fill: "transparent" });
  button.style.cursor = "pointer";
  button.addEventListener("click", () => ui.set("blank", j + 1));
  x += wide;
});
let y = 66;
const left = 92, room = ui.width - left - 46;
const list = (label, rows) => {
  ui.text(0, y + 14, label, { "font-weight": 650 });
  y += 24;
  rows.forEach(([word, chance]) => {
    ui.text(left - 8, y + 14, word, { "text-anchor": "end",
      "font-weight": word === truth ? 650 : 400 });
    ui.rect(left, y + 2, room * chance, data.row - 8,
      { fill: word === truth ? "green" : "blue" });
    ui.text(ui.width, y + 14, chance.toFixed(2), { "text-anchor": "end" });
    y += data.row;
  });
  y += 4;
};
list("BERT, both sides", one.both[at]);
list("GPT, the left side", one.left[at]);
const said = (rows) => `${rows[0][0]} (${rows[0][1].toFixed(2)})`;
ui.say(`The blank was “${truth}”. From both sides BERT expects ${said(one.both[at])}; `
  + `from the left alone GPT expects ${said(one.left[at])}.`);
