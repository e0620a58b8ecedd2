const side = data.side, size = state.size, across = side / size, n = across * across;
if (state.sizeSeen !== size) state.patch = data.darkest[size];
state.sizeSeen = size;

// the image, its patches pulled apart by a gap
const room = Math.min(ui.width - 8, 232);
const gap = state.apart && across > 1 ? Math.min(10, 40 / (across - 1)) : 0;
const pixel = (room - gap * (across - 1)) / side;
const left = (ui.width - room) / 2, top = 4;
const corner = (k) => [left + (k % across) * (size * pixel + gap),
  top + Math.floor(k / across) * (size * pixel + gap)];
const value = (k, i) => data.pixels[Math.floor(k / across) * size + Math.floor(i / size)][
  (k % across) * size + i % size];
for (let k = 0; k < n; k++) {
  const [x, y] = corner(k);
  for (let i = 0; i < size * size; i++) {
    ui.rect(x + (i % size) * pixel, y + Math.floor(i / size) * pixel, pixel, pixel,
      { fill: "ink", "fill-opacity": value(k, i) / 100 });
  }
}
for (let k = 0; k < n; k++) {
  const [x, y] = corner(k), mine = k === state.patch;
  const frame = ui.rect(x, y, size * pixel, size * pixel,
    { fill: "transparent", stroke: mine ? "orange" : "muted", "stroke-width": mine ? 3 : 0.7 });
  ui.active(frame, { key: `patch-${k}`, label: `token ${k + 1} of ${n}: press to read it`,
    press: () => { state.patch = k; } });
}

// its token: one bar for each number
const numbers = Array.from({ length: size * size }, (_, i) => value(state.patch, i) / 100);
const base = room + 44;
ui.text(0, base - 16, `token ${state.patch + 1} of ${n}: ${size * size} `
  + (size > 1 ? "numbers" : "number"), { fill: "orange", "font-weight": 600 });
ui.bars(numbers, { x: 0, y: base - 6, w: Math.min(ui.width, 40 * numbers.length), h: 44,
  fill: "orange" });

ui.say(`Patches of ${size} by ${size}: ${n} ${n > 1 ? "tokens" : "token"} of ${size * size} `
  + `${size > 1 ? "numbers" : "number"} each, ${(n * n).toLocaleString("en")} `
  + `${n > 1 ? "scores" : "score"} for each head. `
  + `Token ${state.patch + 1} holds the pixels in row ${Math.floor(state.patch / across) + 1}, `
  + `column ${state.patch % across + 1} of the patches; its largest number is `
  + `${Math.max(...numbers).toFixed(2)}. ` + (state.apart ? "" : "The patches lie side by side."));
