/** Programs that make, change and remove files. */

import type { Call, Judge } from '../call.ts';
import { endlessDevice } from '../endless.ts';
import { isProtectedText, plainSuffix } from '../protected-writes.ts';
import type { Arg } from '../words.ts';

const name = ({ text, raw }: Arg): string => text || raw || 'what is not known yet';

/** Removing below this folder is work; anywhere else, or all of this folder, is loss. */
function removes(call: Call, targets: readonly Arg[], recursive: boolean): void {
  for (const target of targets) {
    const scope = call.scope(target);
    const what = `${call.program} removes ${name(target)}`;
    if (isProtectedText(target.text, target.glob))
      call.report('destroys', `${what}, which git or another program works by`, target.span);
    else if (scope === 'here' || scope === 'scratch') call.report('local_write', what, target.span);
    else if (recursive || scope === 'root' || scope === 'device' || (scope === 'all-here' && target.glob)) {
      call.report('destroys', `${what} and all below it`, target.span);
    } else if (scope === 'not-known') call.report('not_understood', what, target.span);
    else call.report('destroys', `${what}, outside of this folder`, target.span);
  }
}

const rm: Judge = (call) =>
  removes(call, call.operands, call.has('-r', '-R', '--recursive', '--no-preserve-root') || call.has('-d'));

const isScratch = ({ text }: Arg): boolean => /^(\/var)?\/tmp\/?$/.test(text);

/** All operands but the last are read; the last is written. In a temporary folder that is a new file. */
const copies: Judge = (call) => {
  const folder = call.valueOf('-t', '--target-directory');
  const isRecursive = call.has('-r', '-R', '-a', '--recursive', '--archive');
  if (isRecursive || call.program === 'mv') call.bench.note('copies', call.span);
  const targets = folder === undefined ? call.operands.slice(-1) : [folder];
  call.writes(
    targets.map((target) =>
      isScratch(target) ? { ...target, text: target.text.replace(/\/?$/, '/copy') } : target,
    ),
  );
  const sources = call.operands.filter((arg) => !targets.includes(arg));
  const endless = sources.find(({ text }) => endlessDevice.test(text));
  if (endless !== undefined) call.report('destroys', `${endless.text} has no end`, endless.span);
  judgeSuffix(call);
  const [target] = targets;
  if (target !== undefined && isRecursive && call.has('-T', '--no-target-directory'))
    keepsNames(
      call,
      sources.map((source) => ({ ...source, text: `${source.text}/.` })),
      target,
    );
  if (
    target !== undefined &&
    (folder !== undefined || sources.length > 1 || /(^|\/)\.{0,2}$/.test(target.text))
  )
    keepsNames(call, sources, target);
};

/** In a folder a copy has the name that it had before. */
function keepsNames(call: Call, sources: readonly Arg[], target: Arg): void {
  for (const source of sources) {
    const last = source.text.replace(/\/+$/, '').split('/').at(-1) ?? '';
    // Of `x/..` the files are copied, and not the folder.
    const isAll = /^\.{1,2}$/.test(last) && call.scope(target) === 'all-here';
    if (isAll || isProtectedText(last, source.glob))
      call.report('runs_code', `${call.program} writes ${last}, which other programs execute`, source.span);
  }
}

/** SECURITY: with an end of one's own choice `.envr` becomes `.envrc`. */
function judgeSuffix(call: Call): void {
  const suffix = call.valueOf('-S', '--suffix');
  if (suffix !== undefined && !(suffix.known && plainSuffix.test(suffix.text)))
    call.report('not_understood', `${call.program} adds ${name(suffix)} to names`, suffix.span);
}

const cp: Judge = (call) => {
  if (call.has('-s', '-l', '--symbolic-link', '--link')) links(call);
  else copies(call);
};

const install: Judge = (call) => {
  copies(call);
  judgeMode(call, call.valueOf('-m', '--mode'));
};

const mv: Judge = (call) => {
  copies(call);
  if (call.has('-f', '--force')) call.report('destroys', 'mv -f replaces what is there without asking');
  removes(
    call,
    call.operands
      .slice(0, -1)
      .filter((arg) => !['here', 'scratch'].includes(call.scope(arg)) || isProtectedText(arg.text, arg.glob)),
    true,
  );
};

/** SECURITY: behind a link to elsewhere a path looks like one of this folder. */
const links: Judge = (call) => {
  copies(call);
  for (const source of call.operands) {
    const isInside = ['here', 'scratch'].includes(call.scope(source));
    if (!isInside || isProtectedText(source.text, source.glob))
      call.report('not_understood', `a link to ${name(source)}`, source.span);
  }
};

const writesAll: Judge = (call) => call.writes(call.operands);

/** The first operand is a mode or an owner, or comes from elsewhere. */
const changesModes: Judge = (call) => {
  const reference = call.valueOf('--reference');
  const targets = call.has('--reference') ? call.operands : call.operands.slice(1);
  const wide = targets.find((arg) => ['root', 'system', 'home', 'all-here'].includes(call.scope(arg)));
  if (call.has('-R', '--recursive') && wide !== undefined) {
    call.report('destroys', `${call.program} changes ${name(wide)} and all below it`, wide.span);
  } else call.writes(targets);
  if (reference !== undefined && call.scope(reference) !== 'here')
    call.report('not_understood', `${call.program} takes a mode from ${name(reference)}`, reference.span);
  if (call.program === 'chmod') judgeMode(call, call.operands[0]);
};

const setId = /^0*[2-7][0-7]{3}$|[+=][^,]*s/;
const forOthers = /^[0-7]{0,3}[0-7]{2}[2367]$|(^|,)[ug]*[oa][ugoa]*[+=][^,]*w/;

function judgeMode(call: Call, mode: Arg | undefined): void {
  if (mode === undefined) return;
  if (setId.test(mode.text))
    call.report('system_write', `${call.program} lets a program run as its owner`, mode.span);
  if (forOthers.test(mode.text))
    call.report('system_write', `${call.program} lets every user of this machine change it`, mode.span);
}

/** Of one file it is work, of many at once it is loss. */
const truncate: Judge = (call) => {
  call.writes(call.operands);
  const many = call.operands.find(({ glob }) => glob);
  if (many !== undefined) call.report('destroys', `truncate empties ${name(many)}`, many.span);
};

const tar: Judge = (call) => {
  if (
    call.has(
      '--checkpoint-action',
      '--to-command',
      '--use-compress-program',
      '--rmt-command',
      '--rsh-command',
      '--info-script',
      '--new-volume-script',
    )
  ) {
    call.report('runs_code', 'tar runs a program');
  }
  const mode = call.args[0]?.text.replace(/^-/, '') ?? '';
  if (call.has('-I', '-F')) call.report('runs_code', 'tar runs a program');
  if (call.has('--list') || /^[a-zA-Z]*t[a-zA-Z]*$/.test(mode)) return;
  if (call.has('-P', '--absolute-names')) call.report('system_write', 'tar writes wherever the archive says');
  if (/x/.test(mode) || call.has('--extract', '--get')) {
    namesMember(call, call.operands);
    call.bench.note('brings', call.span);
  }
  const folder = call.valueOf('-C', '--directory');
  const file = /^[a-zA-Z]*x/.test(mode) || call.has('--extract') ? undefined : call.valueOf('-f', '--file');
  call.writes([folder, file].filter((arg) => arg !== undefined));
};

const dd: Judge = (call) => {
  const target = call.args.find(({ text }) => text.startsWith('of='));
  const scope = target === undefined ? undefined : call.scope({ ...target, text: target.text.slice(3) });
  if (scope === 'sink' || (target === undefined && call.args.every(({ known }) => known))) return;
  call.report('destroys', 'dd writes over what is there, byte by byte', target?.span);
};

const zip: Judge = (call) => {
  if (call.has('-T') && call.hasWord('-TT', '--unzip-command'))
    call.report('runs_code', 'zip runs a program');
  call.writes(call.operands.slice(0, 1));
};

const unpacks: Judge = (call) => {
  if (call.has('-l', '-t', '-Z', '--list', '--test')) return;
  namesMember(call, call.operands.slice(1));
  call.bench.note('brings', call.span);
  const folder = call.valueOf('-d');
  call.writes(folder === undefined ? [] : [folder]);
};

/** Of what an archive has, only this. */
function namesMember(call: Call, members: readonly Arg[]): void {
  const member = members.find(({ text }) => isProtectedText(text));
  if (member !== undefined)
    call.report(
      'runs_code',
      `${call.program} writes ${member.text}, which other programs execute`,
      member.span,
    );
}

/** What is unpacked loses the end of its name. */
const compresses: Judge = (call) => {
  if (call.has('-l', '-t', '-c', '--list', '--test', '--stdout')) return;
  call.writes(call.operands);
  // Also `x-gz` and `x_z`.
  const unpacked = call.operands.flatMap((arg) =>
    [/\.[^./]*$/, /[-_][^-_./]*$/].map((end) => ({ ...arg, text: arg.text.replace(end, '') })),
  );
  namesMember(call, unpacked);
};

/** Names begin with the last operand, and continue as many letters as there are parts. */
const split: Judge = (call) => {
  const [prefix] = call.operands.slice(1).slice(-1);
  call.writes(call.operands.slice(1));
  if (prefix !== undefined && /(^|\/)\.[^/]*$/.test(prefix.text))
    call.report('runs_code', 'split writes hidden files, which other programs may execute', prefix.span);
};

const shred: Judge = (call) => call.report('destroys', `${call.program} makes files unreadable for good`);

const editor: Judge = (call) => {
  if (
    call.has('-c', '--cmd', '-S', '--eval', '--batch', '-l', '--load') ||
    call.args.some(({ text }) => text.startsWith('+'))
  ) {
    call.report('runs_code', `${call.program} runs commands`);
  }
  call.writes(call.operands);
};

const rsync: Judge = (call) => {
  const remote = call.operands.find(({ text }) => /^([\w.-]+@)?[\w.-]+::?[^\\]|^rsync:\/\//.test(text));
  if (call.hasWord('-e', '--rsh', '--rsync-path'))
    call.report('runs_code', 'rsync runs a program to connect');
  if (remote !== undefined) call.report('sends_out', `rsync talks to ${remote.text}`, remote.span);
  if (
    call.has('--delete') ||
    call.options.some(({ text }) => text.startsWith('--delete') || text === '--remove-source-files')
  ) {
    call.report('destroys', 'rsync deletes what the source does not have');
  }
  call.writes(call.operands.slice(-1).filter((arg) => arg !== remote));
};

export const fileTools: Readonly<Record<string, Judge>> = {
  rm,
  grm: rm,
  unlink: (call) => removes(call, call.operands, false),
  rmdir: (call) => removes(call, call.operands, true),
  trash: (call) => removes(call, call.operands, false),
  mv,
  cp,
  gcp: cp,
  ln: links,
  install,
  link: links,
  ...Object.fromEntries(
    'touch mkdir mkfifo tee sponge dos2unix unix2dos fallocate mktemp sd'
      .split(' ')
      .map((tool) => [tool, writesAll]),
  ),
  truncate,
  mktemp: (call) => {
    const folder = call.valueOf('-p', '--tmpdir');
    call.writes(folder === undefined ? call.operands : [...call.operands, folder]);
  },
  split,
  csplit: (call) => call.report('local_write', 'csplit writes files'),
  patch: (call) => {
    call.bench.note('brings', call.span);
    call.writes(call.operands.slice(0, 1));
  },
  chmod: changesModes,
  chown: changesModes,
  chgrp: changesModes,
  setfacl: changesModes,
  tar,
  bsdtar: tar,
  gtar: tar,
  dd,
  zip,
  unzip: unpacks,
  '7z': unpacks,
  unrar: unpacks,
  ...Object.fromEntries(
    'gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lz4 compress uncompress brotli'
      .split(' ')
      .map((tool) => [tool, compresses]),
  ),
  cpio: (call) => call.report('local_write', 'cpio writes files'),
  shred,
  wipe: shred,
  srm: shred,
  ...Object.fromEntries(
    'vi vim nvim nano pico emacs ed ex micro joe code subl'.split(' ').map((tool) => [tool, editor]),
  ),
  rsync,
};
