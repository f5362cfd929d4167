/** Interpreters, compilers, builds and test runners: they run what somebody wrote. */

import type { Judge } from '../call.ts';

const runs =
  (why: string): Judge =>
  (call) =>
    call.report('runs_code', `${call.program} ${why}`);

/** Options of a shell that change nothing but how it stops and what it shows. */
const plainShellOption = /^(-[euxvc]*[euxvc]|-[eux]*o|--norc|--noprofile|--posix)$/;

/** What a shell is given as text is judged; what it takes from a file or a pipe is not known. */
const shell: Judge = (call) => {
  const dialect = /^(sh|dash|ash)$/.test(call.program) ? 'dash' : undefined;
  const at = call.args.findIndex(({ text, known }) => known && /^-[a-zA-Z]*c[a-zA-Z]*$/.test(text));
  if (!/^(sh|bash|dash)$/.test(call.program))
    call.report('not_understood', `the language of ${call.program} is not judged`);
  if (at !== -1) {
    const behind = call.args.slice(at + 1);
    const script = behind.find(({ text }) => !/^[-+][a-zA-Z]|^pipefail$/.test(text));
    const own = [
      ...call.args.slice(0, at + 1),
      ...behind.slice(0, script === undefined ? 0 : behind.indexOf(script)),
    ];
    const strange = own.find(
      ({ text, known }) =>
        !known || !(plainShellOption.test(text) || text === 'pipefail' || text === 'errexit'),
    );
    if (strange !== undefined)
      call.report(
        'not_allowed',
        `${call.program} has ${strange.text || 'an option'}, which is not known as harmless`,
        strange.span,
      );
    if (script === undefined) call.report('not_understood', `${call.program} -c without a command`);
    else if (script.known && !script.glob) call.bench.script(script.text, script.span, dialect);
    else call.report('not_understood', `${call.program} runs text that is not known yet`, script.span);
    return;
  }
  if (call.input !== undefined && call.args.every(({ text }) => plainShellOption.test(text) || text === '-s'))
    call.bench.script(call.input, call.span, dialect);
  else
    call.report(
      'runs_code',
      call.operands.length > 0 ? `${call.program} runs a script` : `${call.program} runs what it reads`,
    );
};

export const shells: Readonly<Record<string, Judge>> = Object.fromEntries(
  'sh bash zsh dash ksh ash fish csh tcsh rbash mksh'.split(' ').map((name) => [name, shell]),
);

const python: Judge = (call) => {
  const [first, second] = call.args;
  if (first?.text === '-m' && second?.text === 'pip') {
    call.bench.command([{ ...second, text: 'pip' }, ...call.args.slice(2)], call.span);
    call.report(
      'installs',
      `${call.program} -m pip runs a file of this folder, if there is one of that name`,
    );
    return;
  }
  if (call.args.length === 1 && /^-V+$/.test(first?.text ?? '')) return;
  // With -m a file of this folder comes before the module of that name.
  call.report('runs_code', `${call.program} runs a program`);
};

/** A version is asked for with one letter, too. */
const interpreter: Judge = (call) => {
  if (call.args.length === 1 && /^(-v|-V|-version|version)$/.test(call.args[0]?.text ?? '')) return;
  call.report('runs_code', `${call.program} runs a program`);
};

const compiler: Judge = (call) => {
  if (call.options.some(({ text }) => /^(-wrapper|-fplugin|-specs|-B|-Xclang|@)/.test(text)))
    call.report('runs_code', `${call.program} loads a program`);
  const target = call.valueOf('-o');
  call.writes(target === undefined ? [] : [target]);
};

const formatter: Judge = (call) => {
  if (call.has('--plugin', '--config', '--rulesdir', '--resolve-plugins-relative-to'))
    call.report('runs_code', `${call.program} loads a plugin`);
  else if (!call.has('--check', '--diff', '-c', '--list-different')) call.writes(call.operands);
};

export const programs: Readonly<Record<string, Judge>> = {
  ...shells,
  python,
  pypy: python,
  ipython: runs('runs a program'),
  ...Object.fromEntries(
    'node nodejs deno ruby perl php lua luajit java scala kotlin groovy R Rscript julia erl elixir iex swift osascript tclsh expect gdb lldb irb ts-node tsx zx guile racket sbcl clojure bb crystal nim zig dart flutter wasmtime qemu-x86_64 wine awk-script m4 gnuplot octave sage psh'
      .split(' ')
      .map((name) => [name, interpreter]),
  ),
  ...Object.fromEntries(
    'gcc cc g++ c++ clang clang++ rustc tsc javac ld as ar ranlib strip objcopy swiftc kotlinc nasm yasm protoc'
      .split(' ')
      .map((name) => [name, compiler]),
  ),
  ...Object.fromEntries(
    'make gmake cmake ninja meson bazel bazelisk buck gradle gradlew mvn mvnw ant sbt scons rake just task invoke nox tox webpack vite rollup esbuild parcel turbo nx lerna gulp grunt next nuxt ng vue astro remix svelte-kit storybook'
      .split(' ')
      .map((name) => [name, runs('runs what the project says')]),
  ),
  ...Object.fromEntries(
    'pytest py.test jest vitest mocha ava tap cypress playwright karma jasmine rspec cucumber phpunit behave robot unittest nose2 hypothesis locust k6 eslint stylelint xo standard pylint mypy pyright flake8 bandit rubocop phpstan shellcheck-run pre-commit husky lint-staged knip depcruise prettier'
      .split(' ')
      .map((name) => [name, runs('loads what the project says')]),
  ),
  ...Object.fromEntries(
    'black ruff isort gofmt goimports rustfmt clang-format shfmt autopep8 yapf biome dprint ktlint scalafmt'
      .split(' ')
      .map((name) => [name, formatter]),
  ),
  shellcheck: () => {},
  hadolint: () => {},
  yamllint: () => {},
  ffmpeg: (call) => call.writes(call.operands.slice(-1)),
  ffprobe: () => {},
  convert: (call) => call.writes(call.operands.slice(-1)),
  magick: (call) => call.writes(call.operands.slice(-1)),
  pandoc: (call) => {
    if (call.has('-F', '--filter', '--lua-filter', '--pdf-engine'))
      call.report('runs_code', 'pandoc runs a filter');
    const target = call.valueOf('-o', '--output');
    if (target !== undefined) call.writes([target]);
  },
  claude: runs('is an agent'),
  codex: runs('is an agent'),
  opencode: runs('is an agent'),
};
