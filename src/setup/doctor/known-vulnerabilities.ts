/**
 * Flaws of the engine's parts that matter to whoever runs untrusted code in it, with the first fixed version of each
 * release branch, from the projects' own advisories. Flaws that need Kubernetes are not listed.
 */

export type Component = 'engine' | 'containerd' | 'runc';

export interface Vulnerability {
  readonly cve: string;
  readonly component: Component;
  /** First version that has it; absent where every older one does. */
  readonly introduced?: string;
  /** First fixed version of each branch; a branch without one never got the fix. */
  readonly fixed: readonly string[];
  /** `escape`: code in a container can reach the host. */
  readonly impact: 'escape' | 'limited';
  readonly what: string;
}

export const knownVulnerabilities: readonly Vulnerability[] = [
  {
    cve: 'CVE-2024-21626',
    component: 'runc',
    introduced: '1.0.0-rc.93',
    fixed: ['1.1.12'],
    impact: 'escape',
    what: 'A leaked file descriptor lets a malicious image or working directory reach the file system of the host.',
  },
  {
    cve: 'CVE-2024-45310',
    component: 'runc',
    fixed: ['1.1.14', '1.2.0-rc.3'],
    impact: 'limited',
    what: 'A race over a shared volume can create empty files and folders on the host.',
  },
  {
    cve: 'CVE-2025-31133',
    component: 'runc',
    fixed: ['1.2.8', '1.3.3', '1.4.0-rc.3'],
    impact: 'escape',
    what: 'A replaced /dev/null turns the masking of paths into a mount of host files under /proc.',
  },
  {
    cve: 'CVE-2025-52565',
    component: 'runc',
    introduced: '1.0.0-rc.3',
    fixed: ['1.2.8', '1.3.3', '1.4.0-rc.3'],
    impact: 'escape',
    what: 'A race over the mount of /dev/console opens files under /proc that should be read-only.',
  },
  {
    cve: 'CVE-2025-52881',
    component: 'runc',
    fixed: ['1.2.8', '1.3.3', '1.4.0-rc.3'],
    impact: 'escape',
    what: 'Writes of runc to /proc can be redirected, past the labels that confine a container.',
  },
  {
    cve: 'CVE-2024-40635',
    component: 'containerd',
    fixed: ['1.6.38', '1.7.27', '2.0.4'],
    impact: 'limited',
    what: 'A user id above 2147483647 overflows and the container runs as root inside.',
  },
  {
    cve: 'CVE-2024-25621',
    component: 'containerd',
    fixed: ['1.7.29', '2.0.7', '2.1.5', '2.2.0'],
    impact: 'limited',
    what: 'Folders of containerd are open to every local user of the host.',
  },
  {
    cve: 'CVE-2024-24557',
    component: 'engine',
    fixed: ['24.0.9', '25.0.2'],
    impact: 'limited',
    what: 'The cache of the classic builder can be poisoned by a crafted image.',
  },
  {
    cve: 'CVE-2024-29018',
    component: 'engine',
    fixed: ['23.0.11', '25.0.5', '26.0.0-rc.3'],
    impact: 'limited',
    what: 'DNS questions leave internal networks through the host; Sallyport points the resolver elsewhere.',
  },
  {
    cve: 'CVE-2024-41110',
    component: 'engine',
    fixed: ['23.0.15', '25.0.6', '26.1.5', '27.1.1'],
    impact: 'limited',
    what: 'Authorization plugins can be bypassed by a request without a body; matters only where one is used.',
  },
  {
    cve: 'CVE-2025-54410',
    component: 'engine',
    fixed: ['25.0.13', '28.0.0'],
    impact: 'limited',
    what: 'A reload of firewalld removes the isolation between bridge networks.',
  },
  {
    cve: 'CVE-2025-54388',
    component: 'engine',
    introduced: '28.2.0',
    fixed: ['28.3.3'],
    impact: 'limited',
    what: 'A reload of firewalld opens ports that were published to the loopback address only.',
  },
  {
    cve: 'CVE-2026-34040',
    component: 'engine',
    fixed: ['29.3.1'],
    impact: 'limited',
    what: 'Authorization plugins can be bypassed by an oversized request; matters only where one is used.',
  },
];
