/**
 * The sentences of the five documents, from the YAML files beside this one: what each says, how Sallyport does it, and the
 * tests that fail without it. Pure but for `readDocuments`.
 *
 *   title: Long-lived sandbox          the document
 *   sentences:
 *     - says: …                        the behaviour, in the document's order
 *       id: G1                         the requirement that it is a part of; several: G1 G2
 *       does: …                        how Sallyport does it
 *       tests:                         file: a part of the test's title
 *         - test/integration/a.test.ts: finds the sandbox of the folder again
 *       differs: …                     why Sallyport differs, where it does
 *       open: …                        what is not true yet
 *
 * A sentence has tests, or `differs`, or `open`; a difference and an open sentence may have tests, too.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { requirementIds } from '../mission-report.mjs';
import { root } from '../steps.mjs';

const folder = join(root, 'scripts/requirements');
export const documentNames = ['sandbox', 'services', 'images', 'agents', 'guard'];

export function readDocuments() {
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
  const expected = documentNames.map((name) => `${name}.yaml`);
  const unknown = [
    ...files.filter((name) => !expected.includes(name)),
    ...expected.filter((name) => !files.includes(name)),
  ];
  if (unknown.length > 0) throw new Error(`scripts/requirements has or lacks ${unknown.join(', ')}`);
  return expected.map((name) => documentOf(name, readFileSync(join(folder, name), 'utf8')));
}

export function documentOf(name, text) {
  const { title, sentences } = parse(text);
  if (typeof title !== 'string' || !Array.isArray(sentences))
    throw new Error(`${name}: no title or sentences`);
  return {
    name,
    title,
    sentences: sentences.map((sentence, index) => sentenceOf(`${name} ${index + 1}`, sentence)),
  };
}

const known = ['says', 'id', 'does', 'tests', 'differs', 'open'];

function sentenceOf(place, sentence) {
  const refuse = (why) => {
    throw new Error(`${place}: ${why}`);
  };
  for (const key of Object.keys(sentence)) if (!known.includes(key)) refuse(`unknown key ${key}`);
  const { says, id = '', does = '', tests = [], differs, open } = sentence;
  for (const [key, value] of Object.entries({ says, id, does, differs, open })) {
    if (value !== undefined && typeof value !== 'string') refuse(`${key} is no text`);
  }
  if (says === undefined || says === '') refuse('says nothing');
  const ids = id.split(/\s+/).filter((word) => word !== '');
  for (const word of ids) if (!requirementIds.includes(word)) refuse(`unknown id ${word}`);
  if (ids.length === 0) refuse('no id');
  if (tests.length === 0 && differs === undefined && open === undefined) {
    refuse('neither tests nor `differs` nor `open`');
  }
  if (does === '' && open === undefined && differs === undefined) refuse('does not say how');
  return {
    says: flat(says),
    ids,
    does: flat(does),
    tests: tests.map((test) => testOf(test, refuse)),
    ...(differs === undefined ? {} : { differs: flat(differs) }),
    ...(open === undefined ? {} : { open: flat(open) }),
  };
}

function testOf(test, refuse) {
  const entries = Object.entries(test ?? {});
  const [file, title] = entries[0] ?? [];
  if (entries.length !== 1 || typeof title !== 'string' || title === '')
    refuse('a test is `file: part of its title`');
  return { file, title };
}

const flat = (text) => text.trim().replace(/\s+/g, ' ');

/** Tests that no source has. `sources` are `{ file, text }`. */
export function missingTests(documents, sources) {
  const texts = new Map(sources.map(({ file, text }) => [file, text.replace(/\\(['"`])/g, '$1')]));
  return documents.flatMap(({ name, sentences }) =>
    sentences.flatMap(({ tests }, index) =>
      tests
        .filter(({ file, title }) => !(texts.get(file) ?? '').includes(title))
        .map(({ file, title }) => ({ place: `${name} ${index + 1}`, file, title })),
    ),
  );
}

/** Each sentence with the state of its tests; `ran` are `{ file, title, status }`. */
export function sentenceStates(documents, ran) {
  return documents.flatMap(({ name, sentences }) =>
    sentences.map((sentence, index) => {
      const states = sentence.tests.map(({ file, title }) => {
        const own = ran.filter((test) => test.file === file && test.title.includes(title));
        return worst(own.map(({ status }) => status));
      });
      const state = sentence.open !== undefined ? 'open' : states.length === 0 ? 'differs' : worst(states);
      return { place: `${name} ${index + 1}`, state, ...sentence };
    }),
  );
}

/** A test may have run in several lanes and with several data: failed once is failed. */
function worst(statuses) {
  if (statuses.includes('failed')) return 'failed';
  return statuses.length > 0 && statuses.every((status) => status === 'ok') ? 'ok' : 'not run';
}
