/**
 * Which requirements of the mission are proved, out of test results and test sources. Pure: `mission.mjs` reads the files and
 * prints the report.
 */

/** How many requirements each letter has. */
const ranges = { G: 12, A: 16, O: 8, R: 11, C: 7, N: 23 };
/** Requirements of the second version: one without a test is not built yet, which is no failure. */
const plannedLetter = 'N';

export const requirementIds = Object.entries(ranges).flatMap(([letter, count]) =>
  Array.from({ length: count }, (_, index) => `${letter}${index + 1}`),
);

/** The ids that a title carries: `[A11][O3] is sealed`. */
export function idsOf(title) {
  const words = [...title.matchAll(/\[([^\]]*)\]/g)].flatMap(([, inside]) => inside.split(/[\s,]+/));
  return requirementIds.filter((id) => words.includes(id));
}

/** The titles with ids in the text of a test file. A title begins with its ids; comments that do are no titles. */
export function titlesIn(source) {
  const literal = /(['"`])((?:\[[A-Z]\d+\]\s?)+(?:\\.|(?!\1)[^\\])*)\1/gs;
  return [...source.matchAll(literal)].map(([, , title]) => title.replace(/\\(.)/gs, '$1'));
}

/**
 * One test of several runs, as the worst that happened to it: failed anywhere is `failed`, else passed anywhere is `ok`.
 * A run is the JSON report of vitest; `sources` are `{ file, text }` with paths below the root of the repository.
 */
export function mergeRuns(runs, sources) {
  // A lane may have run in another clone, so only the end of a path is known. The longest that fits is meant.
  const files = sources.map(({ file }) => file).sort((a, b) => b.length - a.length);
  const tests = new Map();
  const note = (file, title, status, ids = idsOf(title)) => {
    const key = `${file}\0${title}`;
    const before = tests.get(key)?.status;
    tests.set(key, { file, title, ids, status: worse(before, status) });
  };
  for (const { testResults } of runs) {
    for (const { name, status, message, assertionResults } of testResults) {
      const file = files.find((known) => name.endsWith(`/${known}`)) ?? name;
      for (const test of assertionResults) note(file, test.fullName.trim(), statusOf(test.status));
      // A file that cannot be loaded, or whose set-up fails, has no failed test to tell of it.
      if (status !== 'failed' || assertionResults.some((test) => test.status === 'failed')) continue;
      const text = sources.find((source) => source.file === file)?.text ?? '';
      const ids = [...new Set(titlesIn(text).flatMap(idsOf))];
      note(file, `${file} failed outside of its tests: ${firstLine(message)}`, 'failed', ids);
    }
  }
  return [...tests.values()];
}

const firstLine = (text = '') => text.split('\n')[0] || 'no reason is reported';

function statusOf(status) {
  if (status === 'passed') return 'ok';
  return status === 'failed' ? 'failed' : 'not run';
}

function worse(one, other) {
  const order = ['failed', 'ok', 'not run'];
  return order.find((status) => status === one || status === other);
}

/** Tests that the sources have and no run knows. What a title is filled with at run time may be anything. */
function missingTests(tests, sources) {
  const ran = new Map();
  for (const { file, title } of tests) ran.set(file, [...(ran.get(file) ?? []), title]);
  return sources.flatMap(({ file, text }) =>
    titlesIn(text)
      .filter((title) => !(ran.get(file) ?? []).some((known) => titlePattern(title).test(known)))
      .map((title) => ({ file, title, ids: idsOf(title), status: 'not run' })),
  );
}

function titlePattern(title) {
  const parts = title.split(/\$\{[^}]*\}|%[a-z#$]|\$[\w.]+/i);
  return new RegExp(parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.*'), 's');
}

export function missionReport({ runs, sources, ran = mergeRuns(runs, sources) }) {
  const tests = [...ran, ...missingTests(ran, sources)];
  const requirements = requirementIds.map((id) => {
    const own = tests.filter(({ ids }) => ids.includes(id));
    return {
      id,
      state: stateOf(id, own),
      tests: own.map(({ file, title, status }) => ({ file, title, status })),
    };
  });
  const withState = (state) => requirements.filter((one) => one.state === state).map(({ id }) => id);
  const count = (status) => tests.filter((test) => test.status === status).length;
  const failures = tests
    .filter(({ status }) => status === 'failed')
    .map(({ file, title, ids }) => ({ file, title, ids }));
  const withoutTest = withState('without a test');
  return {
    ok: failures.length === 0 && withoutTest.length === 0,
    requirements,
    failures,
    withoutTest,
    notBuilt: withState('not built yet'),
    counts: {
      requirements: {
        ok: withState('ok').length,
        failed: withState('failed').length,
        notRun: withState('not run').length,
        withoutTest: withoutTest.length,
        notBuilt: withState('not built yet').length,
      },
      tests: { ok: count('ok'), failed: count('failed'), notRun: count('not run') },
    },
  };
}

function stateOf(id, tests) {
  if (tests.length === 0) return id.startsWith(plannedLetter) ? 'not built yet' : 'without a test';
  return tests.map(({ status }) => status).reduce(worse);
}

const marks = { ok: 'ok      ', failed: 'FAIL    ', 'not run': 'not run ' };

/** The report for people. */
export function missionLines({ requirements, failures, withoutTest, notBuilt, counts }) {
  const inFile = ({ title, file }) => (title.includes(file) ? title : `${title} (${file})`);
  const shown = requirements
    .filter(({ tests }) => tests.length > 0)
    .flatMap(({ id, tests }) => [
      id,
      ...tests.map((test) => `  ${marks[test.status]} ${test.status === 'ok' ? test.title : inFile(test)}`),
    ]);
  const others = failures.filter(({ ids }) => ids.length === 0);
  return [
    ...shown,
    ...(others.length === 0
      ? []
      : ['of no requirement', ...others.map((one) => `  ${marks.failed} ${inFile(one)}`)]),
    '',
    `not built yet: ${notBuilt.join(' ') || 'none'}`,
    `without a test: ${withoutTest.join(' ') || 'none'}`,
    summary(counts),
  ];
}

function summary({ requirements: of, tests }) {
  return [
    `requirements: ${of.ok} ok, ${of.failed} failed, ${of.notRun} not run, ${of.withoutTest} without a test, ${of.notBuilt} not built yet`,
    `tests: ${tests.ok} ok, ${tests.failed} failed, ${tests.notRun} not run`,
  ].join('; ');
}
