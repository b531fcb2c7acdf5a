// The report: reads the embedded JSON and answers questions about its comparisons ("cells", by number).
const Data = (() => {
  const raw = JSON.parse(document.getElementById("report").textContent);
  const { cells, more, runs, stages, layers, verdicts } = raw;
  const count = cells.run.length;
  const number = (v) => (v === "inf" ? Infinity : v === "-inf" ? -Infinity : v === "nan" ? NaN : v);

  // run -> step -> place (layer and stage as one number) -> cells
  const place = (layer, stage) => layer * stages.length + stage;
  const index = runs.map(() => new Map());
  for (let i = 0; i < count; i++) {
    const steps = index[cells.run[i]];
    let step = steps.get(cells.step[i]);
    if (!step) steps.set(cells.step[i], (step = new Map()));
    const key = place(cells.layer[i], cells.stage[i]);
    const there = step.get(key);
    if (there) there.push(i);
    else step.set(key, [i]);
  }

  const verdict = (i) => verdicts[cells.verdict[i]];
  const extra = (i) => more[i] || {};
  const known = (i) => extra(i).known !== undefined;
  const bad = (i) => verdict(i).effect !== "none";
  const fails = (i) => bad(i) && !known(i);
  const ratio = (i) => (cells.ratio[i] === null ? null : number(cells.ratio[i]));
  // The larger, the more worth a look.
  const rank = (i) => (fails(i) ? 1e9 : bad(i) ? 1e6 : 0) + Math.min(1e5, ratio(i) || 0);
  const worst = (list) => list.reduce((a, b) => (rank(b) > rank(a) ? b : a));

  const run = (i) => runs[cells.run[i]];
  const fixture = (i) => raw.fixtures[run(i).fixture];
  const layer = (i) => layers[cells.layer[i]];
  const stage = (i) => stages[cells.stage[i]];
  const stepInfo = (i) => fixture(i).steps[cells.step[i]];
  const stepText = (s) =>
    s.tokens === 1 ? `${s.index} (position ${s.start})` : `${s.index} (positions ${s.start}..${s.start + s.tokens - 1})`;
  const repro = (i) =>
    extra(i).repro ||
    raw.texts[run(i).repro].replace("{layer}", layer(i).id).replace("{step}", stepInfo(i).index).replace("{stage}", stage(i));
  const tolerance = (i) => raw.texts[cells.tolerance[i]];

  const link = (i) =>
    "#cell=" +
    [fixture(i).path, run(i).candidate, run(i).mode, stepInfo(i).index, layer(i).id, stage(i)].map(encodeURIComponent).join("/");
  const linked = (hash) => {
    if (!hash.startsWith("#cell=")) return -1;
    let parts;
    try { parts = hash.slice(6).split("/").map(decodeURIComponent); } catch (e) { return -1; }
    const [path, candidate, mode, step, id, name] = parts;
    for (let i = 0; i < count; i++) {
      if (stage(i) === name && String(layer(i).id) === id && String(stepInfo(i).index) === step && run(i).mode === mode &&
          run(i).candidate === candidate && fixture(i).path === path) return i;
    }
    return -1;
  };
  const firstFailure = () => {
    for (let i = 0; i < count; i++) if (fails(i)) return i;
    return -1;
  };

  return { raw, cells, count, index, place, number, verdict, extra, known, bad, fails, ratio, rank, worst, run, fixture, layer, stage,
           stepInfo, stepText, repro, tolerance, link, linked, firstFailure };
})();

// Makes an element: tag, attributes (class, text, on*), children.
const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "text") node.textContent = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
};
const $ = (id) => document.getElementById(id);

// How figures are written.
const Format = {
  figure: (v) => {
    const n = Data.number(v);
    return Number.isFinite(n) ? String(Number(n.toPrecision(4))) : Number.isNaN(n) ? "nan" : n > 0 ? "inf" : "-inf";
  },
  value: (v) => {
    const n = Data.number(v);
    return Number.isFinite(n) ? String(Number(n.toPrecision(9))) : Number.isNaN(n) ? "nan" : n > 0 ? "inf" : "-inf";
  },
  ratio: (r) => (r === null ? "exact" : Format.figure(r)),
  integer: (n) => n.toLocaleString("en-US"),
};

// How a cell looks: class and the few characters inside it.
const Look = (() => {
  const glyphs = { fail: "\u2715", missing: "\u2205", degenerate: "=", uncertified: "?", crashed: "!", error: "!",
                   tie: "\u2248", explained: "i", unobserved: "\u00b7", pass: "\u2713" };
  const className = (i) => {
    const v = Data.verdict(i);
    if (Data.bad(i)) return Data.known(i) ? "v-known" : "v-bad";
    if (v.name === "unobserved") return "v-unobserved";
    if (v.name !== "pass") return "v-soft";
    const r = Data.ratio(i) || 0;
    return "v-pass" + (r >= 0.8 ? " h4" : r >= 0.5 ? " h3" : r >= 0.25 ? " h2" : r > 0 ? " h1" : "");
  };
  const text = (i) => {
    const r = Data.ratio(i);
    if (Data.verdict(i).name !== "pass" || r === null || r === 0) return glyphs[Data.verdict(i).name];
    return r >= 0.995 ? "1.0" : r.toFixed(2).slice(1);
  };
  const words = (i) => {
    const r = Data.ratio(i);
    return Data.verdict(i).name + (Data.known(i) ? ", a known failure" : "") +
      (r === null ? "" : `, largest error ${Format.figure(r)} of its bound`);
  };
  const tag = (i) => el("span", { class: "tag " + className(i), text: Data.verdict(i).name + (Data.known(i) ? " (known)" : "") });
  const legend = () => [["v-pass", "\u2713", "pass: equal"], ["v-pass h1", ".12", "pass: largest error / bound"],
    ["v-pass h2", ".30", "from a quarter"], ["v-pass h3", ".60", "from a half"], ["v-pass h4", ".95", "from 0.8: little headroom"], ["v-bad", "\u2715", "fail"],
    ["v-bad", "\u2205", "missing"], ["v-bad", "?", "uncertified"], ["v-bad", "=", "degenerate"], ["v-bad", "!", "crashed or error"],
    ["v-known", "\u2715", "known failure"], ["v-soft", "i", "explained"], ["v-soft", "\u2248", "tie"],
    ["v-unobserved", "\u00b7", "unobserved"]].map(([c, t, words]) => el("span", {}, el("i", { class: c, text: t }), words));
  return { className, text, words, tag, legend };
})();
