/** Where shells read the same text differently. Pure. */

/** Words, operators, expansions and names that dash takes for something else, or splits where bash does not. In doubt it does. */
export const differsInDash = new RegExp(
  [
    '\\[\\[|&>|>&\\s*[^\\s\\d-]|\\|&|;&|<<<|[<>]\\(|\\$[\'"\\[]|(^|[^$])\\(\\(|\\w\\+?=\\(|\\w\\+=|[@?*+!]\\([^)]*\\|',
    '\\{[^}\\s]*(,|\\.\\.)[^}\\s]*\\}|\\{\\w+\\}[<>]',
    '\\$\\{(!|\\w+([@:/^,[](?![-=?+])|[@^]))',
    '\\b(function|select|coproc|source|declare|typeset|let|shopt|mapfile|readarray|builtin|enable|pushd|popd|disown|time)\\b',
    '\\b(export|readonly|local)\\b[^;&|\\n]*[$`]',
    '\\b(BASH\\w*|EPOCH\\w+|S?RANDOM|SECONDS|LINENO|SHLVL|E?UID|(OS|HOST|MACH)TYPE|HOSTNAME|COLUMNS|LINES|DIRSTACK|FUNCNAME|GROUPS|PIPESTATUS)\\b',
  ].join('|'),
  'm',
);
