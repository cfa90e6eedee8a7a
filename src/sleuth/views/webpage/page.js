// Charts are drawn when they come near the view: a long page opens at once.
"use strict";
(() => {
  const boxes = [...document.querySelectorAll(".chart")];
  const figures = new Map(boxes.map((box) => [box, box.parentElement.querySelector("script[data-for]")]));
  const show = (box) => sleuthCharts.draw(box, JSON.parse(figures.get(box).textContent)).then(() => box.classList.add("drawn"));
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
  addEventListener("beforeprint", () => missing().forEach(show));
})();
