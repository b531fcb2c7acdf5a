// Puts the page together.
const Page = (() => {
  const select = (i, withFocus) => {
    Grid.reveal(i);
    Detail.show(i);
    if (location.hash !== Data.link(i)) history.replaceState(null, "", Data.link(i));
    if (withFocus) {
      $("cell-title").focus({ preventScroll: true });
      $("cell-section").scrollIntoView({ block: "start" });
    }
  };

  const first = () => {
    const i = Data.firstFailure();
    if (i < 0) {
      const nothing = Data.count === 0 ? "Nothing was compared." : "No comparison fails.";
      $("first").append(el("p", { text: nothing }));
      return;
    }
    const x = Data.extra(i);
    $("first").append(
      el("p", {}, Look.tag(i), " Stage ", el("strong", { text: Data.stage(i) }), ` of layer ${Data.layer(i).id} (${Data.layer(i).kind}), in step ${Data.stepText(Data.stepInfo(i))} of `,
        el("code", { text: Data.fixture(i).path }), `, candidate ${Data.run(i).candidate}, mode ${Data.run(i).mode}.`),
      el("p", { text: x.reason || "" }), x.location ? el("p", {}, el("strong", { text: "Where: " }), x.location) : "",
      el("button", { type: "button", id: "show-first", text: "Show it", onclick: () => select(i, true) }));
  };

  const table = (head, rows) => el("table", {}, el("thead", {}, el("tr", {}, ...head.map((h) => el("th", { scope: "col", class: h.startsWith("#") ? "num" : "", text: h.replace("#", "") })))),
    el("tbody", {}, ...rows.map((r) => el("tr", {}, ...r.map((v, k) => el("td", { class: head[k].startsWith("#") ? "num" : "", text: v }))))));

  const about = () => {
    const r = Data.raw;
    const run = el("div", {}, el("h3", { text: "Run" }), table(["setting", "value"],
      [["reference", r.reference], ["candidates", r.candidates.join(", ")], ["mode", r.mode], ...Object.entries(r.settings)]));
    const versions = el("div", {}, el("h3", { text: "Versions" }), table(["part", "version"], [["attndiff", r.version], ...Object.entries(r.backends)]));
    const timings = r.fixtures.flatMap((f) => f.timings.map((t) => [f.path, t.backend, t.mode, t.seconds.map((s) => s.toPrecision(3)).join(", ")]));
    const coverage = el("div", {}, el("h3", { text: "Coverage" }), ...r.fixtures.map((f) => el("details", {}, el("summary", { text: f.path + (f.uncovered.length ? `: never exercised: ${f.uncovered.join(", ")}` : "") }),
      table(["counter", "#count"], Object.entries(f.coverage)))));
    $("about").append(el("div", { class: "columns" }, run, versions), el("h3", { text: "Timings" }),
      timings.length ? table(["fixture", "backend", "mode", "#seconds, a number for each repetition"], timings) : el("p", { class: "muted", text: "The report has none." }), coverage);
  };

  const theme = () => {
    const root = document.documentElement;
    const prefers = matchMedia("(prefers-color-scheme: dark)");
    const set = (dark) => {
      root.dataset.theme = dark ? "dark" : "light";
      $("theme").setAttribute("aria-pressed", String(dark));
      $("theme").textContent = dark ? "Light" : "Dark";
      document.dispatchEvent(new Event("themechange"));
    };
    set(prefers.matches);
    prefers.addEventListener("change", (e) => set(e.matches));
    $("theme").addEventListener("click", () => set(root.dataset.theme !== "dark"));
  };

  const start = () => {
    theme();
    first();
    $("errors").append(...Data.raw.errors.map((line) => el("li", { text: line })));
    about();
    if (Data.count === 0) {
      $("grid-section").hidden = true;
      $("cell-section").hidden = true;
      return;
    }
    Grid.build();
    Filter.build(Grid.redraw);
    const asked = Data.linked(location.hash);
    let i = asked >= 0 ? asked : Data.firstFailure();
    if (i < 0) {
      i = 0;
      for (let k = 1; k < Data.count; k++) if (Data.rank(k) > Data.rank(i)) i = k;
    }
    Grid.reveal(i);
    Detail.show(i);
    if (asked >= 0) $("cell-section").scrollIntoView({ block: "start" });
    addEventListener("hashchange", () => { const k = Data.linked(location.hash); if (k >= 0) select(k, true); });
    document.addEventListener("keydown", (e) => { if (e.key === "Escape") Grid.focusCell(); });
    document.documentElement.dataset.ready = "true";
  };
  return { select, start };
})();
Page.start();
