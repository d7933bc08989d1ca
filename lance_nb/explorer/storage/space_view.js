// Where the bytes of the folder are, alone.

import { widget } from "../js/view.js";
import { spaceUse } from "./space_use.js";
import { storageFrame } from "./storage_frame.js";

/** @param {HTMLElement} el @param {Lnb.Context} ctx */
export function mountSpace(el, ctx) {
  el.append(
    storageFrame(
      "space",
      spaceUse(ctx, () => ({ branch: ctx.screen().branch, version: ctx.screen().version })),
    ),
  );
}

export default widget(mountSpace, "space of the dataset");
