/** Harmless options of programs that make, change and remove files. Where they write is judged apart. */

const compressors =
  '-123456789cdfklnNqrtvz0 -T: --best --fast --decompress --uncompress --stdout --to-stdout --keep --force --list --test --quiet --verbose --recursive --name --no-name --threads: --rm dashes write';

export const writerOptions: Readonly<Record<string, string>> = {
  rm: '-dfiIrRv --force --interactive? --one-file-system --no-preserve-root --preserve-root? --recursive --dir --verbose abbr write',
  rmdir: '-pv --parents --verbose --ignore-fail-on-non-empty abbr write',
  unlink: 'write',
  mv: '-finTuv -b -S: -t> --force --interactive --no-clobber --update? --verbose --backup? --suffix: --target-directory> --no-target-directory --strip-trailing-slashes abbr write',
  cp: '-abdfHilLnPpRrsTuvx -S: -t> --archive --attributes-only --backup? --copy-contents --force --interactive --link --dereference --no-clobber --no-dereference --preserve? --no-preserve: --parents --recursive --reflink? --remove-destination --sparse: --strip-trailing-slashes --symbolic-link --suffix: --target-directory> --no-target-directory --update? --verbose --one-file-system abbr write',
  ln: '-bfinrsTvLP -S: -t> --force --interactive --symbolic --relative --no-dereference --verbose --target-directory> --no-target-directory abbr write',
  install:
    '-bcCdDpTv -m: -t> --directory --mode: --verbose --target-directory> --no-target-directory --preserve-timestamps write',
  touch: '-acfhm -d: -r< -t: --no-create --date: --reference< --time: --no-dereference abbr write',
  mkdir: '-pv -m: --parents --mode: --verbose abbr write',
  mkfifo: '-m: --mode: write',
  truncate: '-cor -s: --size: --no-create --io-blocks write',
  tee: '-aip --append --ignore-interrupts --output-error? abbr write',
  mktemp: '-dqtu -p> --directory --dry-run --quiet --suffix: --tmpdir? text',
  split:
    '-dex -a: -b: -C: -l: -n: --bytes: --lines: --line-bytes: --number: --numeric-suffixes? --suffix-length: --additional-suffix: --verbose write',
  dos2unix: '-bfkoqv write',
  unix2dos: '-bfkoqv write',
  chmod: '-cfRv --changes --quiet --silent --verbose --recursive --reference< --preserve-root dashes write',
  chown: '-cfhRv --verbose --recursive --from: --no-dereference dashes write',
  chgrp: '-cfhRv --verbose --recursive dashes write',
  sponge: '-a write',
  patch:
    '-bEfltRNsu -d> -i< -p: -o> -F: --backup --batch --directory> --dry-run --force --forward --fuzz: --input< --output> --quiet --reverse --silent --strip: --unified --verbose write',
  zip: '-0123456789rqvjuyFoX -x: -i: dashes write',
  unzip: '-aClLnoqtvz -d> -x: write',
  gzip: compressors,
  gunzip: compressors,
  bzip2: compressors,
  bunzip2: compressors,
  xz: compressors,
  unxz: compressors,
  zstd: `-o> ${compressors}`,
  unzstd: compressors,
  lz4: compressors,
  uncompress: 'write',
  black:
    '-qv -l: -t: --check --diff --color --line-length: --quiet --verbose --target-version: --fast --safe write',
  gofmt: '-deslw write',
  rustfmt: '-lv --check --edition: --color: --quiet write',
  shfmt: '-dlsw -i: -ci -bn write',
  'clang-format': '-i -n --dry-run --Werror --verbose write',
  isort: '-cdqv --check --check-only --diff --profile: --quiet --line-length: write',
  ruff: '-nq --fix --diff --check --select: --ignore: --line-length: --output-format: --quiet --no-cache --unsafe-fixes --statistics write',
  biome: '--write --fix --unsafe --error-on-warnings --colors: --max-diagnostics: --changed --staged write',
  tsc: '-p< -b -w --noEmit --project< --build --pretty --skipLibCheck --strict --listFiles --showConfig --incremental write',
  'ssh-keygen': '-lqvyF: -f> -t: -b: -C: -N: -E: none',
};
