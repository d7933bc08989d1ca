// Where the bytes of the folder are, alone.

import { spaceUse } from "../js/space_use.js";
import { storageFrame } from "../js/storage_frame.js";
import { widget } from "../js/view.js";

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
