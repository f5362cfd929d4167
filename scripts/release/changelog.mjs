/** The section of one version in a changelog of the form of Keep a Changelog. */

/** Without its heading. Undefined: there is no such section, or nothing is in it. */
export function changelogSection(changelog, version) {
  const sections = changelog.split(/^(?=## )/m);
  const found = sections.find((section) => section.startsWith(`## [${version}] - `));
  const text = found?.slice(found.indexOf('\n')).trim();
  return text === '' ? undefined : text;
}

/** Entries that no version has yet. */
export function changelogHasUnreleased(changelog) {
  const sections = changelog.split(/^(?=## )/m);
  return sections.some((section) => section.startsWith('## [Unreleased]') && section.includes('\n- '));
}

/** As `YYYY-MM-DD`. */
export function changelogDate(changelog, version) {
  const heading = changelog.split('\n').find((line) => line.startsWith(`## [${version}] - `));
  return heading?.slice(`## [${version}] - `.length).trim();
}
