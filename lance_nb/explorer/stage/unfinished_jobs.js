// Jobs that were interrupted, such as by a kernel that died: each can be resumed, or forgotten.

import { h, button as makeButton } from "../js/dom.js";

/**
 * @typedef {Object} JobActions
 * @property {(id: string) => void} resume @property {(id: string) => void} forget
 * @property {(code: Lnb.Json) => void} code
 */

/**
 * @param {Lnb.Json} job see stage/unfinished_jobs.py
 * @param {boolean} locked @param {JobActions} act
 */
export function unfinishedJob(job, locked, act) {
  /** @param {string} words @param {() => void} work @param {string} title @param {string} kind */
  const button = (words, work, title, kind) =>
    makeButton(words, work, { class: `lnb-button${kind}`, title, disabled: locked });
  const resume = () => act.resume(job.id);
  const forget = () => act.forget(job.id);
  return h(
    "article.lnb-sg-job",
    {
      "data-job": job.id,
      "aria-label": `unfinished job: ${job.title}`,
      on: { focusin: () => act.code(job.code) },
    },
    h("div.lnb-sg-job-title", h("b", job.title), h("span.lnb-sg-state", "unfinished job")),
    h(
      "ul.lnb-sg-lines",
      job.lines.map((/** @type {string} */ line) => h("li", line)),
    ),
    job.problem ? h("p.lnb-sg-why", job.problem) : null,
    h(
      "div.lnb-sg-job-acts",
      job.problem
        ? null
        : button(
            "Resume",
            resume,
            "run the tasks that are missing, and commit all of them",
            " lnb-sg-go",
          ),
      button("Forget", forget, "remove this job; a clean-up removes its files", ""),
    ),
  );
}
