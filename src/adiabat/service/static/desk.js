// SPDX-License-Identifier: BSD-3-Clause
// Keys for buttons, and printing: pages do all else without a script.
"use strict";

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest("input, select, textarea")) return;
  const chosen = [...document.querySelectorAll("[data-key]")].find(
    (element) => element.dataset.key === event.key.toLowerCase(),
  );
  if (chosen) {
    event.preventDefault();
    chosen.click();
  }
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-print]")) window.print();
});
