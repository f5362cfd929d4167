/** Clients of databases: the statement decides, wherever it is given. */

import type { Call, Judge } from '../call.ts';

const losing =
  /\b(drop\s+(table|database|schema|index|view|user|role|column|keyspace|collection)|truncate(\s+table)?\s|alter\s+table\s+\S+\s+drop|flushall|flushdb|dropdatabase|\.drop\s*\(|deletemany\s*\(\s*\{\s*\})/i;

/** A DELETE or an UPDATE without a WHERE is for every row. */
const everyRow = (sql: string): boolean =>
  sql
    .split(';')
    .some((each) => /^\s*(delete\s+from|update\s+\S+\s+set)\b/i.test(each) && !/\bwhere\b/i.test(each));

const reads = /^\s*(select|show|explain|describe|desc|pragma|\\[dlt]|with)\b/i;
const running =
  /\\!|\bsystem\b|copy\s+.*\bprogram\b|\.shell\b|\.system\b|load_extension|xp_cmdshell|into\s+(out|dump)file/i;

function judgeDatabase(call: Call): void {
  const given = call.args.filter(({ text }) => !/^-/.test(text)).map(({ text }) => text);
  const inline = call.args.flatMap(
    ({ text }) => /^(?:--command|--execute|--eval|--query|-c|-e)=?(.*)$/s.exec(text)?.[1] ?? [],
  );
  const text = [...given, ...inline, call.input ?? ''].join(' ; ');
  const what = call.program;
  if (losing.test(text) || everyRow(text)) call.report('destroys', `${what} deletes what is in a database`);
  if (running.test(text)) call.report('runs_code', `${what} runs a program`);
  if (/^sqlite3?$|^duckdb$/.test(what)) {
    const statement = call.operands
      .slice(1)
      .map((arg) => arg.text)
      .join(' ');
    if (!call.has('-readonly') && !reads.test(statement)) call.writes(call.operands.slice(0, 1));
  } else call.report('sends_out', `${what} talks to a database`);
}

const names = (text: string, judge: Judge): Record<string, Judge> =>
  Object.fromEntries(text.split(' ').map((name) => [name, judge]));

export const databases: Readonly<Record<string, Judge>> = {
  ...names(
    'psql pgcli mysql mycli mariadb sqlite3 sqlite duckdb redis-cli valkey-cli mongo mongosh cqlsh clickhouse-client sqlcmd osql influx cockroach usql pg_dump pg_restore mysqldump mysqladmin mongodump mongorestore',
    judgeDatabase,
  ),
  ...names('dropdb dropuser', (call) =>
    call.report('destroys', `${call.program} deletes a database or who may use it`),
  ),
};
