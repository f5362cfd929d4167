"""Tries to change names below the home folder, each in several ways: tool-acts.py ACTS [TEMPLATE].

ACTS has a line for each: way, path, `folder` or `file`, between tabs. Prints the number of each act that was really done. With TEMPLATE, a folder, each
path is first made as it is there, because one act may spoil the next. One process, because gVisor takes long to start many.
"""
import os, sys


def remove(path):
    """As much of it as can be."""
    if os.path.isdir(path) and not os.path.islink(path):
        for name in os.listdir(path):
            remove('%s/%s' % (path, name))
        act = os.rmdir
    else:
        act = os.unlink
    try:
        act(path)
    except OSError:
        pass


def put(path):
    with open(path, 'w') as file:
        file.write('x')


def beside(path, name):
    """On the same mount, right in the folder of the tool."""
    return '%s/%s' % (path.split('/')[0], name)


def write(path, is_folder):
    os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)
    put(path + '/planted' if is_folder else path)


def link(path, is_folder):
    remove(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink('/tmp', path)


def rename(path, is_folder):
    os.rename(path, path + '.away')


def unlink(path, is_folder):
    remove(path)
    if os.path.lexists(path):
        raise OSError('it is still there')


def hard_link(path, is_folder):
    linked = beside(path, 'linked')
    os.link(path + '/mine' if is_folder else path, linked)
    put(linked)


def replace(path, is_folder):
    new = beside(path, 'new')
    if is_folder:
        os.mkdir(new)
    else:
        put(new)
    try:
        remove(path)
        os.rename(new, path)
    finally:
        remove(new)


def replace_above(path, is_folder):
    above = os.path.dirname(path)
    os.rename(above, beside(path, 'moved'))
    os.mkdir(above)


def renew(path, template):
    for spoilt in [beside(path, 'linked'), beside(path, 'new'), beside(path, 'moved'), path, path + '.away']:
        remove(spoilt)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    copy('%s/%s' % (template, path), path)


def copy(source, target):
    if os.path.isdir(source):
        os.mkdir(target)
        for name in os.listdir(source):
            copy('%s/%s' % (source, name), '%s/%s' % (target, name))
    elif os.path.exists(source):
        put(target)


ways = {
    'write': write,
    'link': link,
    'rename': rename,
    'unlink': unlink,
    'hard link': hard_link,
    'replace': replace,
    'replace the folder above': replace_above,
}

os.chdir(os.path.expanduser('~'))
for number, line in enumerate(sys.argv[1].split('\n')):
    way, path, kind = line.split('\t')
    if len(sys.argv) > 2:
        renew(path, sys.argv[2])
    try:
        ways[way](path, kind == 'folder')
    except OSError:
        continue
    print(number)
