/** Names of variables that may be set. Most variables of an environment make some program load, start or trust something. Pure. */

/**
 * Read by the shell itself, exported or not; or exported already where a guarded command runs; or evaluated as a number when it is
 * set, as RANDOM is.
 */
const steersShell =
  /^(PATH|IFS|HOME|ENV|CDPATH|PS\d|TMOUT|TMPDIR|TIMEFORMAT|OPT(ARG|ERR|IND)|FUNCNEST|INPUTRC|GLOBIGNORE|EXECIGNORE|FIGNORE|POSIXLY_CORRECT|PROMPT_.*|SHELL.*|BASH.*|HIST.*|COMP_.*|COMPREPLY|READLINE_.*|MAIL.*|LD_.*|DYLD_.*|GIT_.*|PAGER|EDITOR|VISUAL|BROWSER|histchars|auto_resume|PWD|OLDPWD|S?RANDOM|SECONDS|LINENO|EPOCH.*|E?UID|PPID|DIRSTACK|FUNCNAME|GROUPS|MAPFILE|_)$/;

/** Harmless for every program: language, colours, sizes, and what a log shows. */
const harmless =
  /^(LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLORTERM|NO_COLOR|FORCE_COLOR|CLICOLOR(_FORCE)?|COLUMNS|LINES|CI|NODE_ENV|RUST_LOG|RUST_BACKTRACE|GREP_COLORS?|LS_COLORS|LSCOLORS|TREE_COLORS|JQ_COLORS|BLOCK_?SIZE|TIME_STYLE|QUOTING_STYLE|TABSIZE|MANWIDTH|GIT_(TERMINAL_PROMPT|OPTIONAL_LOCKS|(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE))|PYTHON(DONTWRITEBYTECODE|UNBUFFERED|IOENCODING|UTF8)|VERBOSE|DEBUG|QUIET|SOURCE_DATE_EPOCH|DEBIAN_FRONTEND|FOO\w*|BAR|BAZ|MY_\w+|MYVAR|GREETING|MESSAGE)$/;

/** Lower-case names are a script's own, but for these. */
const steersLower =
  /(^|_)proxy$|^(npm|pip|uv|yarn|pnpm|bun|gem|bundle|cargo|go|git|hg|docker|python|perl|ruby|java|node|ld|bash|ssh|ssl|curl|wget|less|man|editor|pager|gcc|make|tar|zip|rsync)[_.]|^(env|ifs|cdpath|prompt)$/i;

/** Pagers that show and do nothing else. */
const plainPager = /^(GIT_PAGER|PAGER|MANPAGER)=(cat)?$/;

interface How {
  /** Programs get it, and not only the shell. */
  readonly exported: boolean;
  readonly value?: string | undefined;
}

/** Why setting this name is not harmless; undefined: it is. */
export function whySteers(name: string, { exported, value }: How): string | undefined {
  if (!/^[A-Za-z_]\w*$/.test(name)) return `${name} is no plain name of a variable`;
  if (harmless.test(name)) return undefined;
  if (value !== undefined && plainPager.test(`${name}=${value}`)) return undefined;
  if (steersShell.test(name)) return `${name} decides what the shell or other programs run`;
  const isLower = /^[a-z_][a-zA-Z0-9_]*$/.test(name);
  if (isLower ? steersLower.test(name) : exported) return `${name} may decide what other programs run`;
  return undefined;
}
