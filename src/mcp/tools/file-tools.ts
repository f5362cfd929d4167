/** Tools for the files of a sandbox. They act as its user, inside, and touch nothing of this machine. */

import { z } from 'zod';
import { SallyportError } from '../../protocol/errors.ts';
import type { SandboxFiles } from '../../sdk/sandbox-files.ts';
import { shown } from '../shown-text.ts';
import { tool } from '../tool.ts';
import { boxPath, placeIn, sandboxName } from './common.ts';

/** Larger files are for commands. */
const mostFileBytes = 10 * 2 ** 20;
const usualLines = 2000;
const mostShownCharacters = 100_000;
const mostEntries = 2000;
const mostMatches = 500;

export const fileTools = [
  tool({
    name: 'read_file',
    title: 'Read a file',
    description: 'Read a text file, from a line on.',
    input: z.object({
      path: boxPath,
      sandbox: sandboxName,
      from_line: z.number().int().min(1).default(1),
      lines: z.number().int().min(1).max(20_000).default(usualLines),
    }),
    output: z.object({ path: z.string(), text: z.string(), total_lines: z.number(), truncated: z.boolean() }),
    readOnly: true,
    work: async ({ input, boxes, signal }) => {
      const box = await boxes.get(input.sandbox);
      const path = placeIn(box, input.path);
      const lines = (await readText(box.files, path, signal)).split('\n');
      const first = input.from_line - 1;
      const wanted = shown(lines.slice(first, first + input.lines).join('\n'), mostShownCharacters);
      const truncated = wanted.truncated || first > 0 || first + input.lines < lines.length;
      return { data: { path, text: wanted.text, total_lines: lines.length, truncated }, text: wanted.text };
    },
  }),
  tool({
    name: 'write_file',
    title: 'Write a file',
    description: 'Write a whole file; its folders are made where they are missing.',
    input: z.object({ path: boxPath, content: z.string(), sandbox: sandboxName }),
    output: z.object({ path: z.string(), bytes: z.number() }),
    work: async ({ input, boxes, signal }) => {
      const box = await boxes.get(input.sandbox);
      const path = placeIn(box, input.path);
      const folder = path.slice(0, path.lastIndexOf('/')) || '/';
      await box.files.mkdir(folder, { parents: true, signal });
      const { size } = await box.files.write(path, input.content, { signal });
      return { data: { path, bytes: size } };
    },
  }),
  tool({
    name: 'edit_file',
    title: 'Edit a file',
    description: 'Replace a piece of a text file. It must occur exactly once, unless all is true.',
    input: z.object({
      path: boxPath,
      old: z.string().min(1),
      new: z.string(),
      all: z.boolean().default(false),
      sandbox: sandboxName,
    }),
    output: z.object({ path: z.string(), replaced: z.number() }),
    work: async ({ input, boxes, signal }) => {
      const box = await boxes.get(input.sandbox);
      const path = placeIn(box, input.path);
      const parts = (await readText(box.files, path, signal)).split(input.old);
      const replaced = parts.length - 1;
      if (replaced === 0) throw notEdited(path, 'the text does not occur in it', 'Read the file again.');
      if (replaced > 1 && !input.all) {
        throw notEdited(
          path,
          `the text occurs ${replaced} times in it`,
          'Give more of its surroundings, or all.',
        );
      }
      await box.files.write(path, parts.join(input.new), { signal });
      return { data: { path, replaced } };
    },
  }),
  tool({
    name: 'list_files',
    title: 'List a folder',
    description: 'The entries of a folder.',
    input: z.object({ path: boxPath.default('.'), sandbox: sandboxName }),
    output: z.object({
      path: z.string(),
      entries: z.array(z.object({ name: z.string(), kind: z.string(), size: z.number().optional() })),
      truncated: z.boolean(),
    }),
    readOnly: true,
    work: async ({ input, boxes, signal }) => {
      const box = await boxes.get(input.sandbox);
      const path = placeIn(box, input.path);
      const all = await box.files.list(path, { details: true, signal });
      const entries = all.slice(0, mostEntries).map(({ name, kind, size }) => ({
        name,
        kind,
        ...(size === undefined || kind !== 'file' ? {} : { size }),
      }));
      const text = entries.map(({ name, kind }) => (kind === 'directory' ? `${name}/` : name)).join('\n');
      return { data: { path, entries, truncated: all.length > entries.length }, text };
    },
  }),
  tool({
    name: 'search_files',
    title: 'Search in files',
    description: 'Lines that match an extended regular expression, below a folder, as path:line:text.',
    input: z.object({
      pattern: z.string().min(1),
      path: boxPath.default('.'),
      include: z.string().optional().describe('only files of this name pattern, such as *.ts'),
      sandbox: sandboxName,
    }),
    output: z.object({ matches: z.array(z.string()), truncated: z.boolean() }),
    readOnly: true,
    work: async ({ input, boxes, signal }) => {
      const box = await boxes.get(input.sandbox);
      const include = input.include === undefined ? [] : [`--include=${input.include}`];
      const argv = ['grep', '-rnIE', '--exclude-dir=.git', ...include, '-e', input.pattern, '--'];
      const found = await box.exec([...argv, placeIn(box, input.path)], { signal, timeoutMs: 60_000 });
      if (found.exitCode !== 0 && found.exitCode !== 1) {
        throw new SallyportError('usage', `the search failed: ${found.stderr.trim()}`);
      }
      const lines = found.stdout.split('\n').filter((line) => line !== '');
      const matches = lines.slice(0, mostMatches).map((line) => line.slice(0, 500));
      const truncated = found.truncated || lines.length > matches.length;
      return { data: { matches, truncated }, text: matches.join('\n') };
    },
  }),
];

async function readText(files: SandboxFiles, path: string, signal: AbortSignal): Promise<string> {
  const { size } = await files.stat(path, { signal });
  if (size > mostFileBytes) {
    throw new SallyportError('usage', `${path} has ${size} bytes, which is too much to read at once`, {
      advice: 'Use a command such as head, tail or sed.',
    });
  }
  return await files.readText(path, { signal });
}

const notEdited = (path: string, why: string, advice: string): SallyportError =>
  new SallyportError('usage', `${path} was not changed: ${why}`, { advice, details: { path } });
