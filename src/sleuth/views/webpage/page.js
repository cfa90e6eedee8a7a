// Charts are drawn when they come near the view: a long page opens at once.
"use strict";
(() => {
  const boxes = [...document.querySelectorAll(".chart")];
  const figures = new Map(boxes.map((box) => [box, box.parentElement.querySelector("script[data-for]")]));
  let started; // plotly, once the page stands: a promise
  const start = () => {
    const waiting = document.getElementById("plotly");
    const script = document.createElement("script");
    script.textContent = waiting.textContent;
    waiting.replaceWith(script);
  };
  const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const plotly = () => (started ??= (document.hidden ? Promise.resolve() : painted()).then(start));
  const show = async (box) => {
    await plotly();
    await sleuthCharts.draw(box, JSON.parse(figures.get(box).textContent));
    box.classList.add("drawn");
  };
  const watch = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        watch.unobserve(entry.target);
        show(entry.target);
      }
    },
    { rootMargin: "600px 0px" },
  );
  boxes.forEach((box) => watch.observe(box));
  document.body.classList.add("ready");
  const missing = () => boxes.filter((box) => !box.classList.contains("drawn"));
  addEventListener("beforeprint", () => {
    if (!started) started = Promise.resolve(start()); // nobody waits for a frame then
    missing().forEach(show);
  });
})();
