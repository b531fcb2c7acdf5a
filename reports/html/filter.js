// The filters, and the list of comparisons that pass them.
const Filter = (() => {
  const state = { fixture: "", verdict: "", stage: "", layer: "", step: "", mode: "", candidate: "" };
  const values = {
    fixture: (i) => Data.fixture(i).path,
    verdict: (i) => Data.verdict(i).name,
    stage: (i) => Data.stage(i),
    layer: (i) => String(Data.layer(i).id),
    step: (i) => String(Data.stepInfo(i).index),
    mode: (i) => Data.run(i).mode,
    candidate: (i) => Data.run(i).candidate,
  };
  const pageLength = 100;
  let shown = pageLength;
  let matching = [];
  let changed = () => {};

  const passes = (i) => {
    for (const key in state) {
      const wanted = state[key];
      if (wanted === "") continue;
      if (key === "verdict" && wanted === "failing") { if (!Data.fails(i)) return false; }
      else if (values[key](i) !== wanted) return false;
    }
    return true;
  };
  const active = () => Object.values(state).some((v) => v !== "");

  const options = (key) => {
    const r = Data.raw;
    const lists = {
      fixture: () => r.fixtures.map((f) => f.path),
      verdict: () => ["failing", ...[...new Set(Data.cells.verdict)].sort((a, b) => a - b).map((v) => r.verdicts[v].name)],
      stage: () => r.stages,
      layer: () => r.layers.map((l) => l.id).sort((a, b) => a - b),
      step: () => r.fixtures.flatMap((f) => f.steps.map((s) => s.index)).sort((a, b) => a - b),
      mode: () => r.runs.map((run) => run.mode),
      candidate: () => r.runs.map((run) => run.candidate),
    };
    return [...new Set(lists[key]())];
  };

  const build = (onChange) => {
    changed = onChange;
    for (const key in state) {
      const select = el("select", { id: "filter-" + key, onchange: (e) => { state[key] = e.target.value; update(); } },
        el("option", { value: "", text: "all" }), ...options(key).map((o) => el("option", { value: o, text: o })));
      $("filters").append(el("label", {}, key, select));
    }
    $("filters").append(el("button", { type: "button", text: "Clear", onclick: () => {
      for (const key in state) { state[key] = ""; $("filter-" + key).value = ""; }
      update();
    } }));
    $("list-more").addEventListener("click", () => { shown += pageLength; list(); });
    update();
  };

  const update = () => {
    matching = [];
    for (let i = 0; i < Data.count; i++) if (passes(i)) matching.push(i);
    const ranks = new Float64Array(Data.count);
    for (const i of matching) ranks[i] = Data.rank(i);
    matching.sort((a, b) => ranks[b] - ranks[a]);
    shown = pageLength;
    list();
    changed();
  };

  const list = () => {
    const head = ["verdict", "fixture", "step", "layer", "stage", "candidate", "mode", "differ", "error / bound"];
    const table = $("list");
    table.replaceChildren(el("thead", {}, el("tr", {}, ...head.map((h, k) => el("th", { scope: "col", class: k > 6 ? "num" : "", text: h })))));
    const body = el("tbody");
    for (const i of matching.slice(0, shown)) {
      body.append(el("tr", {}, el("td", {}, Look.tag(i)), el("td", { text: Data.fixture(i).path }),
        el("td", { text: Data.stepText(Data.stepInfo(i)) }), el("td", { text: Data.layer(i).id }),
        el("td", {}, el("button", { type: "button", text: Data.stage(i), "aria-label": `Show ${Data.stage(i)} of layer ${Data.layer(i).id} in step ${Data.stepInfo(i).index}`,
          onclick: () => Page.select(i, true) })),
        el("td", { text: Data.run(i).candidate }), el("td", { text: Data.run(i).mode }),
        el("td", { class: "num", text: Format.integer(Data.cells.mismatches[i]) }),
        el("td", { class: "num", text: Format.ratio(Data.ratio(i)) })));
    }
    table.append(body);
    $("list-more").hidden = matching.length <= shown;
    $("list-count").textContent = `${Format.integer(matching.length)} of ${Format.integer(Data.count)} comparisons` +
      (active() ? " pass the filters above" : "") + "; failing ones first, then the least headroom" +
      (matching.length > shown ? `; the first ${shown} are shown` : "") + ".";
  };
  return { build, passes, active };
})();
