// Views that the first screen does without: their module is requested when their tab is first
// opened.

import { placeOf } from "./view_place.js";

export const LONGEST_MS = 20000; // between the kernel's answer and the arrival of the module

const NO_KERNEL = {
  title: "This tab needs a kernel",
  message: "It is read when it is opened for the first time, and no kernel is connected.",
  hint: "Run the cell to see it.",
};
const NO_MODULE = {
  title: "This tab was not loaded",
  message: "The kernel sent its views, but they did not arrive in this page.",
  hint: "Try again. If that does not help, run the cell again.",
};

/** @param {{title: string, message: string, hint: string}} card @returns {Lnb.Failure} */
function failure(card) {
  return Object.assign(new Error(card.message), { card: { where: "", kind: "Kernel", ...card } });
}

/**
 * Load the views of a module. Rejects with an error that carries an error card.
 * @param {Lnb.Kernel} kernel
 * @param {string} entry
 * @param {boolean} again whether this was tried before
 * @returns {Promise<Lnb.Widget>}
 */
export async function loadViews(kernel, entry, again) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let forget = () => {};
  if (kernel.state === "static" && !kernel.isLost) throw failure(NO_KERNEL);
  const given = new Promise((_resolve, reject) => {
    forget = kernel.onState((state) => {
      if (state === "static" && !kernel.isLost) reject(failure(NO_KERNEL));
    });
  });
  try {
    const request = kernel.ask("views.load", { entry, again });
    const { result } = await Promise.race([request, given]);
    const late = new Promise((_resolve, reject) => {
      timer = setTimeout(() => reject(failure(NO_MODULE)), LONGEST_MS);
    });
    return await Promise.race([placeOf(result.key).views, given, late]);
  } finally {
    clearTimeout(timer);
    forget();
  }
}
