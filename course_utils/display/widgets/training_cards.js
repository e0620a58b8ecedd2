const PALETTE = ["blue", "orange", "green", "purple", "red", "grey"];
const FLAGS = ["scaled", "positions", "causal"], SLIDERS = ["heads", "rate", "seed"];
const kept = data.kept ||= { curves: [], before: [], seen: {} };

// ---------------------------------------- the training: a worker, or slices in the page
const received = (message) => {
  if (!message.steps) kept.curves = [];
  kept.losses = message.steps ? [...kept.losses, ...message.losses] : [];
  kept.curves.push({ at: message.steps, before: message.before, partner: message.partner });
  kept.now = message;
  kept.pending = "";
  ui.set("steps", message.steps);
};
const begin = () => {
  try {
    const source = `${data.engine}\nconst act = trainer(postMessage, ${data.most});`
      + "\nonmessage = ({ data: message }) => act(message);";
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const worker = new Worker(address);
    worker.onmessage = ({ data: message }) => received(message);
    return (what, settings) => worker.postMessage({ what, settings });
  } catch {
    const make = new Function("post", "most", `${data.engine}\nreturn trainer(post, most);`);
    const waiting = [];  // in order, whatever the timers do
    const act = make((message) => {
      waiting.push(message);
      setTimeout(() => received(waiting.shift()));
    }, data.most);
    return (what, settings) => act({ what, settings });
  }
};

// --------------------------------------------------- the settings, and a link to them
const settings = Object.fromEntries([...SLIDERS, ...FLAGS].map((key) => [key, state[key]]));
const link = `#${data.name}?${new URLSearchParams(Object.entries(settings).map(
  ([key, value]) => [key, Number(value)]))}`;
if (!kept.ask) {
  kept.ask = begin();
  const [place, rest] = location.hash.split("?");
  if (place === `#${data.name}` && rest) {
    const said = new URLSearchParams(rest);
    SLIDERS.forEach((key) => {
      const box = ui.root.querySelector(`[data-control=${key}]`);
      const value = Number(said.get(key) ?? NaN);
      if (JSON.parse(box.dataset.values).includes(value)) ui.write(key, value);
    });
    FLAGS.forEach((key) => { if (said.has(key)) ui.write(key, said.get(key) === "1"); });
    return ui.set("shown", 3);
  }
}
const key = JSON.stringify(settings), fresh = state.again !== kept.again;
if (kept.key !== key || fresh) {
  // the curve of the settings before stays, to be compared
  if (kept.key !== key && kept.now && kept.now.steps) {
    kept.before = kept.curves;
    kept.beforeOf = kept.parts;
  }
  const goOn = kept.key !== key && kept.now && kept.now.running;
  Object.assign(kept, { key, again: state.again, losses: [], curves: [] });
  kept.parts = [`${state.heads} head${state.heads > 1 ? "s" : ""}`, `rate ${state.rate}`,
    `seed ${state.seed}`, state.scaled ? "with the scale" : "no scale",
    state.positions ? "with positions" : "no positions", state.causal ? "causal" : "no mask"];
  const usual = ["with the scale", "with positions", "no mask"];
  kept.said = kept.parts.filter((part) => !usual.includes(part)).join(", ");
  kept.pending = "Drawing new weights. ";
  kept.ask("start", settings);
  if (goOn) kept.ask("run"); // who switches while it trains wants to see it train
  if (ui.root.closest(".bd-article") && kept.linked && kept.linked !== link) {
    try { history.replaceState(null, "", link); } catch { /* not allowed here */ }
  }
  kept.linked = link;
  state.copied = "";
}
const over = kept.now && kept.now.steps >= data.most;
if (state.train !== kept.train) {
  const running = kept.now && kept.now.running;
  if (kept.train !== undefined) {
    kept.pending = running ? "Stopping. " : "Training. ";
    if (over) kept.ask("start", settings);
    kept.ask(running ? "pause" : "run");
  }
  kept.train = state.train;
}
if (state.step !== kept.step) {
  if (kept.step !== undefined) {
    kept.pending = "Computing one step. ";
    kept.ask("step");
  }
  kept.step = state.step;
}
if (state.copy !== kept.copy) {
  if (kept.copy !== undefined) {
    const address = location.href.split("#")[0] + link;
    state.copied = `The link is ${address}`;
    if (navigator.clipboard) navigator.clipboard.writeText(address).then(
      () => ui.set("copied", "The link to these settings is in the clipboard."), () => {});
  }
  kept.copy = state.copy;
}
ui.label("train", kept.now && kept.now.running ? "Pause" : over ? "Train again" : "Train");
if (!kept.now) return ui.say("Drawing the first weights.");

// ------------------------------------------------------------------ the row of cards
const { colours, letters, weights, steps } = kept.now, n = colours.length;
const narrow = ui.width < 480, wide = Math.min(ui.width / n, 44);
const asker = Math.min(state.shown ?? 3, n - 1);
const partner = colours.findIndex((c, j) => c === colours[asker] && j !== asker);
const x = (i) => i * wide;
colours.forEach((colour, i) => {
  const card = ui.rect(x(i) + 2, 22, wide - 4, 32, { fill: PALETTE[colour], rx: 4,
    stroke: i === asker ? "ink" : "surface", "stroke-width": i === asker ? 3 : 1 });
  ui.active(card, { key: `card-${i}`, group: "cards", pressed: i === asker,
    label: `card ${i + 1}: ${"ABCDEFGH"[letters[i]]}, ${PALETTE[colour]}`,
    press: () => { state.shown = i; } });
  ui.text(x(i) + wide / 2, 43, "ABCDEFGH"[letters[i]], { fill: "surface",
    "text-anchor": "middle", "font-weight": 700, "pointer-events": "none" });
});
ui.text(0, 13, narrow ? "press a card: its weights are framed"
  : "a row of cards that no training sees; press one: its row of weights is framed",
{ fill: "muted" });
[[asker - 1, "before"], [partner, "partner"]].forEach(([i, word], side) => {
  if (i < 0) return;
  const at = Math.min(Math.max(x(i) + wide / 2, 26), n * wide - 26);
  ui.text(at, 70 + (side && Math.abs(i - asker + 1) < (narrow ? 3 : 2) ? 14 : 0), word,
    { "text-anchor": "middle", fill: side ? "orange" : "blue", "font-weight": 600 });
});

// ------------------------------------------------------------- right answers by step
const top = 118, high = 104, from = 34, across = ui.width - from - 12;
const most = Math.max(100, kept.now.running || steps > 100
  ? Math.min(data.most, Math.ceil((steps + 1) / 100) * 100) : 100,
...kept.before.map(({ at }) => at));
[0, 0.5, 1].forEach((tick) => {
  ui.line(from, top + high * (1 - tick), from + across, top + high * (1 - tick));
  ui.text(from - 6, top + high * (1 - tick) + 4, tick, { "text-anchor": "end", fill: "muted" });
});
ui.text(0, top - 12, "share of right answers on new rows", { "font-weight": 600 });
ui.text(from + across, top + high + 16, `${most} steps`, { "text-anchor": "end", fill: "muted" });
const point = ({ at }, share) => [from + across * at / most, top + high * (1 - share)];
const draw = (curves, question, more) => {
  if (curves.length > 1) ui.curve(curves.map((entry) => point(entry, entry[question])),
    { stroke: question === "before" ? "blue" : "orange", ...more });
};
["before", "partner"].forEach((question) => {
  draw(kept.before, question, { "stroke-opacity": 0.35, "stroke-dasharray": "4 4" });
  draw(kept.curves, question, {});
  const last = kept.curves.at(-1);
  if (last) ui.circle(...point(last, last[question]), 4,
    { fill: question === "before" ? "blue" : "orange" });
});
// the loss on the same axis: the mean of ten steps, as a share of what a guess would lose
const smooth = kept.losses.map((_, i, all) => {
  const some = all.slice(Math.max(0, i - 9), i + 1);
  return Math.min(1, some.reduce((sum, value) => sum + value, 0) / some.length / Math.log(8));
});
if (smooth.length > 1) ui.curve(smooth.map((share, i) => point({ at: i + 1 }, share)),
  { stroke: "muted", "stroke-width": 1.5 });
ui.text(from, top + high + 16, "card before", { fill: "blue", "font-weight": 600 });
ui.text(from + 92, top + high + 16, "partner", { fill: "orange", "font-weight": 600 });
ui.text(from + 154, top + high + 16, narrow ? "loss" : "loss (1: that of a guess)",
  { fill: "muted" });
if (kept.before.length) ui.text(from, top + high + 33, `dashed: ${kept.beforeOf.filter(
  (part, i) => part !== kept.parts[i]).join(", ") || "the training before"}`, { fill: "muted" });

// ------------------------------------------------------------------ what the heads see
const below = top + high + 60, between = narrow ? 8 : 14;
const side = Math.min((ui.width - between * (weights.length - 1)) / weights.length, 138);
weights.forEach((table, h) => {
  const left = h * (side + between), at = below;
  const cell = side / n, shades = {};
  ui.text(left, at - 6, `head ${h + 1}`, { "font-weight": 600 });
  table.forEach((row, i) => row.forEach((weight, j) => {
    const level = Math.round(8 * weight);
    if (level) shades[level] = `${shades[level] || ""}M${(left + j * cell).toFixed(1)} ${
      (at + i * cell).toFixed(1)}h${cell.toFixed(1)}v${cell.toFixed(1)}h${-cell.toFixed(1)}z`;
  }));
  ui.rect(left, at, side, side, { fill: "none", stroke: "grid" });
  for (const level in shades) ui.path(shades[level], { "fill-opacity": level / 8 });
  ui.rect(left, at + asker * cell, side, cell, { fill: "none", stroke: "ink" });
});

// ------------------------------------------------------------------------------ in words
const two = (share) => share.toFixed(2), { before, partner: other, both } = kept.now;
const recent = kept.losses.slice(-20);
const loss = recent.reduce((sum, value) => sum + value, 0) / recent.length;
const looks = weights.map((table, h) => `${two(table[asker][asker - 1] ?? 0)} and ${
  two(table[asker][partner])} (head ${h + 1})`).join(", ");
ui.say(`${kept.pending || ""}${state.copied ? `${state.copied} ` : ""}${kept.said}: step ${steps} of ${data.most}${
  over ? ", the last" : ""}${recent.length ? `, loss ${loss.toFixed(3)}` : ""}. Right on new rows: ${
  two(before)} about the card before, ${two(other)} about the partner, ${two(both)} about both (a `
  + `guess: 0.13, 0.13, 0.02). The weights of card ${asker + 1} on the card before it and on its `
  + `partner: ${looks}.`);
