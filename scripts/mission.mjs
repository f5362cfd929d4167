/**
 * `npm run mission`: each sentence of the five documents with its tests, then each requirement of the mission with the tests that carry
 * its id, and how they ended in the last run. `--json` prints the same as data. The exit code is 1 if a test failed, a sentence names a
 * test that does not exist, or a requirement of the first version has no test.
 *
 * Results are in `.cache/test-results.json`, or one file per lane in `.cache/test-results/`; all of them count together.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { mergeRuns, missionLines, missionReport } from './mission-report.mjs';
import { missingTests, readDocuments, sentenceStates } from './requirements/documents.mjs';
import { sentenceLines, sentenceReport, sentenceSummary } from './requirements/report.mjs';
import { root } from './steps.mjs';
import { testSources } from './test-sources.mjs';

const cache = join(root, '.cache');
const lanes = join(cache, 'test-results');
const reports = [
  join(cache, 'test-results.json'),
  ...(existsSync(lanes)
    ? readdirSync(lanes)
        .filter((name) => name.endsWith('.json'))
        .map((name) => join(lanes, name))
    : []),
].filter((path) => existsSync(path));

if (reports.length === 0) {
  console.error('sally: no test results yet\nsally: run `npm test` first');
  process.exit(1);
}

const runs = reports.map((path) => JSON.parse(readFileSync(path, 'utf8')));
const sources = testSources();
const ran = mergeRuns(runs, sources);
const documents = readDocuments();
const report = missionReport({ sources, ran });
const sentences = sentenceReport(sentenceStates(documents, ran), missingTests(documents, sources));
console.log(
  process.argv.includes('--json')
    ? JSON.stringify({ ...report, ok: report.ok && sentences.ok, sentences }, null, 2)
    : [...sentenceLines(sentences), '', ...missionLines(report), sentenceSummary(sentences)].join('\n'),
);
process.exitCode = report.ok && sentences.ok ? 0 : 1;
