/** Who judges which program. A program that is in no table is unknown. */

import { machineOptions } from './allowed/machine.ts';
import { readerOptions } from './allowed/readers.ts';
import { writerOptions } from './allowed/writers.ts';
import type { Call, Judge } from './call.ts';
import { containers } from './tools/containers.ts';
import { databases } from './tools/databases.ts';
import { fileTools } from './tools/files.ts';
import { git } from './tools/git.ts';
import { network } from './tools/network.ts';
import { packages } from './tools/packages.ts';
import { programs, shells } from './tools/programs.ts';
import { readers } from './tools/readers.ts';
import { system } from './tools/system.ts';
import { windows } from './tools/windows.ts';
import { wrappers } from './wrappers.ts';

const judges = new Map<string, Judge>(
  [
    readers,
    fileTools,
    git,
    network,
    packages,
    programs,
    containers,
    databases,
    system,
    windows,
    wrappers,
  ].flatMap((table) => Object.entries(table)),
);

const windowsJudges = new Map(Object.entries(windows));

/** Windows does not tell Del from del, and everybody writes Remove-Item as they like. */
export function judgeOf(program: string): Judge | undefined {
  const judge = judges.get(program) ?? windowsJudges.get(program.toLowerCase()) ?? family(program);
  return judge === undefined ? undefined : (call) => (asksOnly(call) ? undefined : judge(call));
}

/** python3.12, mkfs.ext4, gcc-13: the same program under a longer name. */
function family(program: string): Judge | undefined {
  const short =
    /^(python|perl|ruby|php|lua|node|gcc|g\+\+|clang|pip|java|mkfs|fsck)[0-9.-]*(\.[a-z0-9]+|-[0-9.]+)?$/.exec(
      program,
    );
  return short === null ? undefined : judges.get(short[1] ?? '');
}

const asksByLetter = /^(node|nodejs|java|php|perl|ruby|npm|rustc|python[\d.]*|pip[\d.]*)$/;

/**
 * Programs that answer --version and --help before they look at this folder, besides those that only read or write files.
 * SECURITY: pytest, jest, tox, mvn, yarn and many others load a plugin or a configuration of the project first.
 */
const answers = new Set(
  (
    'bash sh dash zsh fish ksh env nice nohup timeout stdbuf xargs parallel watch sudo setsid flock strace ltrace ' +
    'node nodejs deno bun perl ruby php lua luajit java javac scala kotlin kotlinc R Rscript julia erl elixir swift swiftc ghc ocaml ' +
    'cc c++ rustc rustup cargo go tsc ld as ar nasm yasm protoc cmake make gmake ninja meson gradle gdb lldb wine ' +
    'npm npx pnpm uv uvx pipx pipenv conda mamba gem brew apt apt-get apt-cache dpkg rpm dnf yum pacman apk snap flatpak helm ' +
    'pyenv rbenv nvm fnm volta asdf git hub svn docker podman nerdctl docker-compose kubectl minikube kind k9s terraform tofu packer ' +
    'aws az gcloud gh glab psql mysql mariadb sqlite3 sqlite duckdb redis-cli mongosh pg_dump mysqldump ssh scp sftp rsync nc ' +
    'curl wget http openssl gpg ffmpeg ffprobe convert magick pandoc gnuplot octave dot jq yq vim vi nvim nano emacs code tmux screen less ' +
    'eslint prettier black ruff isort gofmt goimports rustfmt clang-format shfmt autopep8 yapf biome mypy shellcheck hadolint yamllint ' +
    'systemctl journalctl nginx find gfind sed gsed awk gawk mawk nawk tar gtar bsdtar zip unzip 7z dd cpio shred fd fdfind git-lfs claude codex opencode'
  ).split(' '),
);
const answersVersioned = /^(python|pypy|pip|gcc|g\+\+|clang|clang\+\+|perl|ruby|php|lua|node|java)[\d.-]*$/;
const plain = new Set([readerOptions, machineOptions, writerOptions].flatMap((table) => Object.keys(table)));

export function asksOnly({ program, args }: Call): boolean {
  if (!(answers.has(program) || plain.has(program) || answersVersioned.test(program))) return false;
  const [only] = args;
  if (args.length !== 1 || only?.known !== true) return false;
  return (
    /^(--version|--help)$/.test(only.text) ||
    (asksByLetter.test(program) && /^(-v|-V|-version)$/.test(only.text))
  );
}

/** Read all that is below a folder. */
export const readsDeep = (program: string): boolean =>
  /^([ef]?grep|rg|ag|tar|gtar|bsdtar|zip|7z|cp|mv|rsync|diff|git|find|ln|scp|cpio)$/.test(program);

/** Judged by what they run; their own options are judged there. */
export const runsOthers = (program: string): boolean =>
  Object.hasOwn(wrappers, program) || Object.hasOwn(shells, program) || program === 'eval';
