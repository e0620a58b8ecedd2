// A GPT writes on: the tokens as a strip, and beside it what might stand at one position.
const PACE = 180, kept = data.kept ||= { read: [], logits: [] };
const calm = window.matchMedia && matchMedia("(prefers-reduced-motion: reduce)").matches;
const load = (then) => loadModel(data.name, (model) => {
  kept.model = model;
  window.courseGPT = { model, emptyCaches, readToken, bytePairs, cutOdds, drawToken };
  state.failed = false;
  then();
  ui.set("loaded", true);
}, () => ui.set("failed", true));
if (state.seed === undefined) {
  Object.assign(state, { seed: 1, n: 0, at: 0, writing: false, writeSeen: 0, againSeen: 0 });
  onSight(ui.root, () => load(() => {}));
}

// ---------------------------------------------------------------- the prompt, as tokens
const ids = bytePairs(state.prompt, data.merges), prompt = ids.slice(-data.room);
if (state.prompt !== state.promptSeen) {
  Object.assign(state, { promptSeen: state.prompt, n: 0, at: prompt.length });
  stop();
}
ui.suggest("prompt", "", data.prompts.filter((text) => text !== state.prompt),
  (text) => text);

// --------------------------------------------- what the model computes, and what it draws
// The logits at each position; keys and values of what is unchanged are read but once.
function logitsOf(tokens) {
  if (!kept.model) return `${tokens}` === `${data.still.tokens}` ? data.still.logits : [];
  kept.caches ||= emptyCaches(kept.model);
  let same = 0;
  while (same < tokens.length && tokens[same] === kept.read[same]) same += 1;
  if (same < kept.read.length) {
    kept.caches.forEach((each) => { each.keys.length = each.values.length = same; });
    kept.logits.length = kept.read.length = same;
  }
  tokens.slice(same).forEach((token) => {
    kept.logits.push(readToken(kept.model, token, kept.caches));
    kept.read.push(token);
  });
  return kept.logits;
}
const cut = (logits) => cutOdds(logits, state.heat, state.k, state.p);
// With the same prompt, settings and seed the same text is written.
function textOf(n) {
  const settings = [prompt, state.heat, state.k, state.p, state.seed].join("|");
  if (kept.settings !== settings) {
    Object.assign(kept, { settings, written: [], uniform: ui.uniforms(state.seed) });
  }
  while (prompt.length && kept.model && kept.written.length < n) {
    const logits = logitsOf([...prompt, ...kept.written]).at(-1);
    kept.written.push(drawToken(cut(logits), kept.uniform()));
  }
  return [...prompt, ...kept.written.slice(0, n)];
}

// ---------------------------------------------------------------------- write and stop
function stop() {
  clearTimeout(kept.timer);
  state.writing = false;
}
function go(n) {
  Object.assign(state, { n, at: prompt.length + Math.max(n - 1, 0), writing: n < data.more });
  clearTimeout(kept.timer);
  if (state.writing) kept.timer = setTimeout(() => { go(state.n + 1); ui.set("tick", n); }, PACE);
}
const begin = () => {
  const start = () => go(calm ? data.more : 1);
  if (kept.model) start();
  else load(start);
};
const pressed = (key) => {
  const news = state[key] !== state[`${key}Seen`];
  state[`${key}Seen`] = state[key];
  return news && prompt.length > 0;
};
if (pressed("again")) {
  state.seed += 1;
  begin();
}
if (pressed("write")) {
  if (state.writing) stop();
  else begin();
}
ui.label("write", state.writing ? "Stop" : `Write ${data.more} tokens`);

// ---------------------------------------------------------------------- the text so far
const tokens = textOf(state.n), logits = logitsOf(tokens), narrow = ui.width < 560;
const place = Math.min(state.at, tokens.length), stands = tokens[place];
const own = (i) => logits[i] && softmax(logits[i]);  // before temperature and cuts
const strip = { w: narrow ? ui.width : 0.52 * ui.width, h: narrow ? data.strip : ui.height };
const LETTER = 9.1, PAD = 3;  // pixels of a letter of 15 pixels
const chips = [], most = Math.floor(strip.w / LETTER) - 1;
let x = 0, row = 0;
[...tokens, null].forEach((token, i) => {
  const word = token === null ? "?" : data.pieces[token].slice(0, most).replaceAll("␣", " ");
  const width = Math.max(word.length * LETTER + 2 * PAD, token === null ? 24 : 0);
  if (x + width > strip.w) [x, row] = [0, row + 1];
  chips.push({ token, word, i, x, row, width });
  x += width + 2;
});
const pitch = Math.min(32, (strip.h - 26) / (row + 1));
chips.forEach(({ token, word, i, x: left, row: line, width }) => {
  const top = line * pitch, tall = pitch - 3, odds = i > 0 && token !== null && own(i - 1);
  const odd = i < prompt.length && data.unseen.includes(token);
  const chosen = i === place && prompt.length > 0;
  ui.rect(left, top, width, tall, { fill: "blue", "fill-opacity": odds ? 0.5 * odds[token] : 0,
    rx: 3 });
  const text = ui.text(left + PAD, top + tall / 2 + 5, word,
    { fill: i < prompt.length ? "muted" : "ink" });
  Object.assign(text.style, { font: "15px ui-monospace, Menlo, Consolas, monospace",
    whiteSpace: "pre" });
  const frame = ui.rect(left + 0.5, top + 0.5, width - 1, tall - 1, { fill: "transparent", rx: 3,
    stroke: chosen ? "orange" : odd ? "red" : token === null ? "muted" : "grid",
    "stroke-width": chosen ? 2.5 : 1, "stroke-dasharray": token === null ? "3 3" : undefined });
  if (!prompt.length || i === 0) return;
  ui.active(frame, { key: `token-${i}`, group: "tokens", pressed: chosen,
    press: () => { stop(); state.at = i; },
    label: token === null ? "the next token: what may come" : `“${data.pieces[token]}”${
      odds ? `, probability ${odds[token].toFixed(2)}` : ""}: what might stand here` });
});
if (state.n) ui.text(0, (row + 1) * pitch + 16, "Press a token. Bluer: more probable.",
  { fill: "muted" });

// ------------------------------------------------------ what might stand at one position
const here = logits[place - 1], box = narrow ? { x: 0, y: data.strip + 6, w: ui.width }
  : { x: strip.w + 20, y: 0, w: 0.48 * ui.width - 20 };
const from = box.x + 92, wide = box.w - 92 - 44, top = box.y + 44;
const now = here && cut(here), was = here && own(place - 1);
ui.text(box.x, box.y + 13, place < tokens.length ? `Might stand in place of “${
  data.pieces[stands].slice(0, 11)}”` : "May come next", { "font-weight": 650 });
ui.text(box.x, box.y + 32, !here ? "" : "probability (frame: before the settings)",
  { fill: "muted" });
if (here) {
  const shown = now.order.slice(0, data.rows), rank = now.order.indexOf(stands);
  if (rank >= data.rows) shown[data.rows - 1] = stands;
  const others = now.order.filter((i) => !shown.includes(i));
  const sum = (odds) => others.reduce((total, i) => total + odds[i], 0);
  const bar = (line, label, share, before, bold) => {
    const y = top + line * data.row, cutOff = share === 0 && { fill: "grey" };
    ui.text(from - 8, y + 14, label, { "text-anchor": "end", "font-weight": bold ? 650 : 400,
      ...cutOff });
    ui.rect(from, y + 2, wide * share, data.row - 8, { fill: bold ? "orange" : "blue" });
    ui.rect(from, y + 2, wide * before, data.row - 8, { fill: "none", stroke: "muted" });
    ui.text(box.x + box.w, y + 14, cutOff ? "cut" : share.toFixed(2), { "text-anchor": "end",
      "font-weight": bold ? 650 : 400, ...cutOff });
  };
  shown.forEach((i, line) =>
    bar(line, data.pieces[i].slice(0, 11), now.odds[i], was[i], i === stands));
  bar(data.rows, `${others.length} more`, sum(now.odds), sum(was), false);
}

// ------------------------------------------------------------------------------ in words
const text = state.prompt + tokens.slice(prompt.length).map((i) => data.pieces[i]).join("")
  .replace(/[␣↵⇥]+/g, " ");
const strange = prompt.filter((i) => data.unseen.includes(i)).length;
const notes = [
  strange && `Not in the training text: ${strange} of these tokens (red). `
    + "The model has not learned what they mean.",
  ids.length > data.room && `Of your ${ids.length} tokens the model reads the last ${
    data.room}; its other positions are for what it writes.`,
].filter(Boolean).join(" ");
if (state.failed) ui.say("The model's file did not arrive. Press the button to try again.");
else if (!prompt.length) ui.say("The model continues a text: type a prompt.");
else if (!here || (!kept.model && state.writeSeen + state.againSeen > 0)) {
  ui.say("The model is being loaded.");
}
else if (state.writing) ui.say("It is writing; each token is drawn from the bars.");
else {
  const first = now.order[0], many = `${now.count} of ${here.length} tokens ${
    place < tokens.length ? "might stand here" : "may come"}`;
  const held = now.count < here.length ? `, which had ${now.held.toFixed(2)
  } of the probability at temperature ${state.heat}` : "";
  const likeliest = `The likeliest is “${data.pieces[first]}” (${now.odds[first].toFixed(2)})`;
  ui.say(`${state.n ? `Sample ${state.seed}: “${text}”. ` : ""}${many}${held}. ${likeliest}${
    stands === undefined || stands === first ? "" : `; “${data.pieces[stands]}” has ${
      now.odds[stands].toFixed(2)}`}. ${notes}`);
}
