const place = data.lengths.indexOf(state.length);
const examples = data.examples[place];
const shown = examples[state.another % examples.length];
const kept = new Set(shown.kept), right = new Set(shown.right);

// words from left to right, on as many lines as they need; returns the next line's y
const ruler = document.createElement("canvas").getContext("2d");
ruler.font = "650 13px system-ui, sans-serif";
const write = (words, top, style) => {
  let x = 0, y = top;
  words.forEach((word, i) => {
    const wide = ruler.measureText(word).width;
    if (x + wide > ui.width) { x = 0; y += 21; }
    const { fill = "ink", weight = 400, line } = style(i);
    ui.text(x, y, word, { fill, "font-weight": weight,
      "text-decoration": line });
    x += wide + 6;
  });
  return y + 34;
};
const heading = (text, y) => { ui.text(0, y, text, { fill: "muted" }); return y + 20; };

// on top: the share of words kept, by length, with a dot for this length
const high = ui.width < 480 ? 64 : 150, bottom = 26 + high;
const left = 34, wide = ui.width - left - 12;
const first = data.lengths[0], last = data.lengths[data.lengths.length - 1];
const at = (length) => left + wide * (last > first ? (length - first) / (last - first) : 0);
const up = (share) => bottom - high * share;
ui.text(0, 12, "share of the right tokens kept, on average",
  { fill: "muted" });
[0, 0.5, 1].forEach((tick) => {
  ui.line(left, up(tick), left + wide, up(tick));
  ui.text(left - 6, up(tick) + 4, tick, { "text-anchor": "end", fill: "muted" });
});
if (data.trained > first && data.trained < last) {
  ui.line(at(data.trained + 0.5), bottom - high, at(data.trained + 0.5), bottom,
    { stroke: "muted", "stroke-dasharray": "4 4" });
  ui.text(left + wide, bottom + 16, "longer than trained on",
    { fill: "muted", "text-anchor": "end" });
}
ui.curve(data.lengths.map((length, i) => [at(length), up(data.share[i])]));
ui.circle(at(state.length), up(data.share[place]), 6);
ui.text(Math.max(at(state.length), left), bottom + 32, state.length,
  { "text-anchor": "middle", "font-weight": 650 });

// below: the sentence, what it should become, and what became of it
let y = heading("English", bottom + 62);
y = write(shown.source.split(" "), y, () => ({}));
y = heading("what it should say (struck out: lost)", y);
y = write(shown.reference, y, (i) => kept.has(i) ? { fill: "green", weight: 650 }
  : { fill: "muted", line: "line-through" });
y = heading("what the model said (underlined: wrong)", y);
write(shown.said.length ? shown.said : ["(nothing)"], y, (i) => right.has(i)
  ? { fill: "green", weight: 650 } : { fill: "orange", line: "underline" });

const there = `${kept.size} of ${shown.reference.length}`;
ui.say(`${state.length} English tokens: ${there} French tokens are there, in the right order`
  + (kept.size === shown.reference.length && shown.said.length === kept.size
    ? "; nothing else is said." : `, among the ${shown.said.length} that the model says.`)
  + ` At this length ${Math.round(100 * data.share[place])} % are kept on average.`);
