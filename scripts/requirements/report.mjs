/** What `npm run mission` says of the sentences of the five documents. Pure. */

/** `states` and `missing` as documents.mjs has them. */
export function sentenceReport(states, missing) {
  const places = (state) => states.filter((one) => one.state === state).map(({ place }) => place);
  return {
    ok: missing.length === 0 && places('failed').length === 0,
    sentences: states,
    missing,
    counts: {
      ok: places('ok').length,
      failed: places('failed').length,
      notRun: places('not run').length,
      differ: places('differs').length,
      open: places('open').length,
    },
  };
}

const marks = { ok: 'ok     ', failed: 'FAIL   ', 'not run': 'not run', differs: 'differs', open: 'open   ' };

/** Each sentence with its state, then named tests that do not exist. */
export function sentenceLines({ sentences, missing }) {
  return [
    ...sentences.map(
      ({ place, state, ids, says }) => `  ${marks[state]} ${place} [${ids.join(' ')}] ${says}`,
    ),
    ...missing.map(({ place, file, title }) => `  FAIL    ${place}: no test "${title}" in ${file}`),
  ];
}

export function sentenceSummary({ counts, missing }) {
  const { ok, failed, notRun, differ, open } = counts;
  return `sentences: ${ok} ok, ${failed} failed, ${notRun} not run, ${differ} differ, ${open} open; ${missing.length} named tests do not exist`;
}
