# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of others that know RFS by the patches of host/fs/packaging, in a guest."""

import subprocess
from pathlib import Path

import pytest
from mounted import Run, Volume, script

from rsd import debian
from rsd.artifacts import REPOSITORY
from rsd.cache import Cache, hash_file, hash_inputs
from rsd.progress import Progress

pytestmark = pytest.mark.guest

PACKAGING = REPOSITORY / "host/fs/packaging"

# Neither automake nor autoconf is needed to build what their authors released.
MAKE = "make AUTOMAKE=: ACLOCAL=: AUTOCONF=: AUTOHEADER=:"

# git am takes a patch as who gets it by mail does: with its author, its message and its image.
APPLY = """
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a \\
    GIT_COMMITTER_EMAIL=a
git init -q
git add -Af
git commit -qm released
git am -q {patch}
git log -1 --format=%B | grep '^Signed-off-by: '
"""

# The list of files that automake would make anew lacks the probe, so it is named here. The
# test is util-linux's own, of an image of each file system; the patch adds one of RFS.
PROBE = "libblkid/src/superblocks/rfs.lo"
BLKID = f"""
./configure --disable-all-programs --enable-libblkid --enable-blkid --disable-nls \\
    --disable-static CFLAGS=-O1
{MAKE} CFLAGS="-O1 -Ilibblkid/src" {PROBE}
{MAKE} libblkid_la_LIBADD="libcommon.la {PROBE}" libblkid.la blkid test_sysinfo
tests/ts/blkid/low-probe --srcdir="$PWD" --builddir="$PWD" >../low-probe || {{
    cat ../low-probe
    grep -r "^[-+]" tests/diff
    exit 1
}}
grep ': rfs  *[.]* OK' ../low-probe
rm ../low-probe
cp -L .libs/libblkid.so.1 ..
"""
QUOTA_PROGRAMS = "edquota quota quotaon repquota setquota warnquota"
QUOTA = f"""
./configure --disable-rpc --disable-ext2direct --disable-ldapmail --disable-netlink \
    --disable-pam --disable-libwrap --disable-nls CFLAGS=-O1
{MAKE} {QUOTA_PROGRAMS}
cp {QUOTA_PROGRAMS} ..
cp quotaon ../quotaoff
"""


def patched(cache: Cache, package: str, patch: Path, commands: str) -> dict[str, Path]:
    """What `commands` copy to the directory above the patched source, by name."""
    progress = Progress()
    debian.release(cache, progress)
    version = debian.source_versions(cache, package)[0]
    compiler = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True)

    def build(directory: Path) -> None:
        with progress.step(f"{package}: source") as step:
            debian.download_source(cache, step, package, version, directory)
        source = directory / "source"
        source.mkdir()
        (archive,) = directory.glob("*.orig.tar.*")
        unpack = f"tar --no-same-owner -xf {archive} --strip-components=1\n"
        text = unpack + APPLY.format(patch=patch) + commands
        made = subprocess.run(
            ["sh", "-ec", text], cwd=source, capture_output=True, text=True, check=False
        )
        assert made.returncode == 0, f"{made.stdout}{made.stderr}"
        archive.unlink()
        subprocess.run(["rm", "-r", source], check=True)

    key = hash_inputs(version, hash_file(patch), APPLY, commands, compiler.stdout)
    return {path.name: path for path in cache.entry("test-packaging", key, build).iterdir()}


@pytest.fixture(scope="session")
def libblkid(rsd_cache: Cache) -> dict[str, Path]:
    """util-linux's library that reads superblocks; mount, blkid, lsblk and wipefs ask it."""
    return patched(rsd_cache, "util-linux", PACKAGING / "libblkid-add-RFS.patch", BLKID)


@pytest.fixture(scope="session")
def quota_tools(rsd_cache: Cache) -> dict[str, Path]:
    """The quota tools, which know by name what file systems keep quotas without files."""
    return patched(rsd_cache, "quota", PACKAGING / "quota-add-RFS.patch", QUOTA)


def test_libblkid(run: Run, volume: Volume, libblkid: dict[str, Path]) -> None:
    """A volume is found by label and UUID, has its type shown, is not overwritten, is wiped."""
    if volume.system != "rsd":
        pytest.skip("others are known")
    run(
        script(
            volume,
            """
            fails 2 blkid -p $drive
            export LD_LIBRARY_PATH=/in
            rm /etc/filesystems
            mkfs.rfs -q -f -L shelf $drive
            uuid=$(dump.rfs $drive | awk '/uuid/ { print $2; exit }')
            blkid -p $drive | grep 'LABEL="shelf" .*UUID="'$uuid'" .*TYPE="rfs"'
            test $(blkid -c /dev/null -t LABEL=shelf -o device) = $drive
            test $(findfs UUID=$uuid) = $drive
            lsblk --properties-by blkid -fn $drive | tee /tmp/said
            grep "rfs .*shelf .*$uuid" /tmp/said
            for name in LABEL=shelf UUID=$uuid $drive; do
                mount $name /mnt
                grep "^$drive /mnt rfs " /proc/mounts
                umount /mnt
            done
            echo "LABEL=shelf /mnt auto defaults 0 0" >>/etc/fstab
            mount /mnt
            grep "^$drive /mnt rfs " /proc/mounts
            end
            fails 1 mkfs.xfs $drive >/tmp/said 2>&1
            grep 'existing filesystem (rfs)' /tmp/said
            fails 1 mkfs.btrfs -O zoned -d single -m single $drive >/tmp/said 2>&1
            grep 'existing filesystem (rfs)' /tmp/said
            fsck.rfs $drive
            wipefs $drive | grep rfs
            wipefs -a $drive
            fails 2 blkid -p $drive
            fails 8 fsck.rfs $drive
            """,
        ),
        system=volume.system,
        inputs=libblkid,
    )


def test_quota_tools(run: Run, volume: Volume, quota_tools: dict[str, Path]) -> None:
    """They show usage, set and edit limits and times of grace, begin and end to enforce, warn."""
    if volume.system != "rsd":
        pytest.skip("others are known")
    run(
        script(
            volume,
            """
            PATH=/in:$PATH
            as() { setpriv --reuid=1000 --regid=2000 --clear-groups "$@"; }
            blocks() { as dd if=/dev/zero of=/mnt/$1 bs=4k count=$2; }
            start -o usrquota,grpquota
            chmod 777 /mnt
            blocks file 16 # and one of their index
            setquota -u 1000 100 128 2 3 /mnt
            setquota -t -u 3600 7200 /mnt
            repquota -n /mnt | tee /tmp/said
            grep "^Block grace time: 01:00; Inode grace time: 02:00$" /tmp/said
            grep -E "^#1000 +-- +68 +100 +128 +1 +2 +3 *$" /tmp/said
            repquota -gna | grep -E "^#2000 +-- +68 +0 +0 +1 +0 +0 *$"
            as quota -v | grep -E " 68 +100 +128 "
            fails 1 blocks more 32
            repquota -n /mnt | grep -E "^#1000 +[+]- +128 +100 +128 "
            rm /mnt/more
            quotaon -upv /mnt | grep "^user quota on /mnt ($drive) is on (enforced)$"
            quotaoff -u /mnt
            quotaon -upv /mnt | grep "^user quota on /mnt ($drive) is on (accounting)$"
            blocks more 32
            quotaon -u /mnt
            fails 1 blocks again 1
            echo 'MAIL_CMD = "cat >>/tmp/mail"' >/tmp/warnquota
            echo "user:x:1000:2000::/:/bin/sh" >>/etc/passwd
            warnquota -c /tmp/warnquota
            cat /tmp/mail
            grep "^To: user$" /tmp/mail
            grep -E "^$drive +[+][+] +[0-9]+ +100 +128 +3 +2 +3 +02:00$" /tmp/mail
            rm /tmp/mail
            echo 'sleep 0.1; sed -i -E "s/ 100 +128 / 400 800 /; s/ 2 +3$/ 20 30/" "$1"' >/tmp/limit
            EDITOR="sh /tmp/limit" edquota -u 1000
            repquota -n /mnt | tee /tmp/said
            grep -E "^#1000 +-- +[0-9]+ +400 +800 +3 +20 +30 *$" /tmp/said
            blocks again 1
            warnquota -c /tmp/warnquota
            test ! -e /tmp/mail
            edquota -u -p 1000 1001
            setpriv --reuid=1001 --clear-groups touch /mnt/other
            repquota -n /mnt | grep -E "^#1001 +-- +0 +400 +800 +1 +20 +30 *$"
            echo 'sleep 0.1; sed -i s/1hours/3hours/ "$1"' >/tmp/times
            EDITOR="sh /tmp/times" edquota -u -t
            repquota -n /mnt | grep "^Block grace time: 03:00; Inode grace time: 02:00$"
            end
            """,
        ),
        system=volume.system,
        inputs=quota_tools,
    )
