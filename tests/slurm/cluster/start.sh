#!/usr/bin/env bash
# Start a Slurm of one node on loopback: munged, mariadbd, slurmdbd, slurmctld, slurmd.
#   start.sh FOLDER [--no-accounts]
# FOLDER holds its configuration, state, logs and pids. Needs root, Debian's packages slurm-wlm,
# slurmdbd, munge and mariadb-server, and /etc/slurm without a cluster's slurm.conf: Snakemake's jobs
# find it there only, since the executor takes SLURM_CONF out of their environment.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
home=$(mkdir -p "$1" && cd "$1" && pwd)
accounts=1
[ "${2:-}" = "--no-accounts" ] && accounts=
run=$home/run
host=$(hostname -s)
# A cluster that was never stopped, as after a crash, would hold the ports.
before=$(readlink /etc/slurm/slurm.conf || true)
before=${before%/etc/slurm.conf}
if [ "$before" ] && [ "$before" != "$home" ] && [ -d "$before/run" ]; then
    "$here/stop.sh" "$before"
fi
mkdir -p "$home"/{etc,log,state,spool,run,dev,mysql} /etc/slurm
chmod 755 "$home"
export SLURM_CONF=$home/etc/slurm.conf

# Programs that fail say so in their own logs only.
failed() { # LINE COMMAND
    echo "start.sh: line $1: $2 failed" >&2
    tail -n 8 "$home"/log/*.log >&2
}
trap 'failed $LINENO "$BASH_COMMAND"' ERR

# A killed daemon that nobody has waited for is still a process, in state Z.
alive() { [ -f "$1" ] && ps -o stat= -p "$(cat "$1")" | grep -qv Z; }

until_true() { # DESCRIPTION COMMAND…
    local what=$1
    shift
    for _ in $(seq 150); do
        timeout 5 "$@" > /dev/null 2>&1 && return
        sleep 0.2
    done
    echo "start.sh: $what did not start; see $home/log" >&2
    exit 1
}

listens() { ss -ltn | grep -q ":$1 "; }

# The database runs as root, as the rest does: a user of its own could not reach FOLDER wherever a
# folder above it, or / itself, is closed to others.
database() {
    setsid mariadbd --no-defaults --user=root --datadir="$home/mysql" \
        --socket="$run/mysql/socket" --pid-file="$run/mysql/pid" --bind-address=127.0.0.1 \
        --port=13306 --innodb-buffer-pool-size=64M --innodb-lock-wait-timeout=900 \
        --skip-log-bin >> "$home/log/mariadb.log" 2>&1 < /dev/null &
    echo $! > "$run/mariadb.pid"
}

free() { # PORT
    if listens "$1"; then
        echo "start.sh: port $1 is in use by another program: ss -ltnp 'sport = :$1'" >&2
        exit 1
    fi
}

for path in "$here"/*.conf.in; do
    name=$(basename "$path" .in)
    [ "$name" = slurmdbd.conf ] && mode=600 || mode=644
    sed -e "s#@HOME@#$home#g" -e "s#@HOST@#$host#g" "$path" > "$home/etc/$name"
    chmod "$mode" "$home/etc/$name"
done
[ "$accounts" ] || sed -i '/^AccountingStorage/d' "$home/etc/slurm.conf"
for name in slurm gres cgroup; do
    if [ -e "/etc/slurm/$name.conf" ] && [ ! -L "/etc/slurm/$name.conf" ]; then
        echo "start.sh: /etc/slurm/$name.conf is a cluster's; left alone" >&2
        exit 1
    fi
    ln -sfn "$home/etc/$name.conf" "/etc/slurm/$name.conf"
done
for i in $(seq 0 7); do
    [ -c "$home/dev/gpu$i" ] || mknod "$home/dev/gpu$i" c 1 3
done

if [ ! -f "$run/munge.key" ]; then
    (umask 077 && head -c 1024 /dev/urandom > "$run/munge.key")
fi
alive "$run/munge.pid" || munged --force --socket="$run/munge.socket" --key-file="$run/munge.key" \
    --pid-file="$run/munge.pid" --log-file="$home/log/munged.log" --seed-file="$run/munge.seed"

if [ "$accounts" ]; then
    if ! alive "$run/mariadb.pid"; then
        free 13306
        mkdir -p "$run/mysql"
        [ -d "$home/mysql/mysql" ] || mariadb-install-db --no-defaults --user=root \
            --datadir="$home/mysql" --auth-root-authentication-method=socket --skip-test-db \
            > "$home/log/mariadb-install.log" 2>&1
        ping=(mariadb-admin --no-defaults -S "$run/mysql/socket" ping)
        for _ in $(seq 300); do # again, too: it ends while one that was stopped still has its files
            alive "$run/mariadb.pid" || database
            timeout 5 "${ping[@]}" > /dev/null 2>&1 && break
            sleep 0.2
        done
        until_true mariadbd "${ping[@]}"
        mariadb --no-defaults -S "$run/mysql/socket" -e "
            create database if not exists slurm_acct_db;
            create user if not exists 'slurm'@'127.0.0.1' identified by 'slurm';
            create user if not exists 'slurm'@'localhost' identified by 'slurm';
            grant all on slurm_acct_db.* to 'slurm'@'127.0.0.1';
            grant all on slurm_acct_db.* to 'slurm'@'localhost';"
    fi
    # slurmdbd looks for its file beside slurm.conf.
    alive "$run/slurmdbd.pid" || { free 16819 && slurmdbd; }
    export -f listens
    until_true slurmdbd bash -c "listens 16819"
    until_true "the accounting" sacctmgr -n list cluster
    sacctmgr -n list cluster | grep -q test || sacctmgr -i -Q add cluster test
    if ! sacctmgr -n list account | grep -q lab; then
        sacctmgr -i -Q add account lab Cluster=test Description=lab Organization=lab
        sacctmgr -i -Q add user root Account=lab
    fi
fi
alive "$run/slurmctld.pid" || { free 16817 && slurmctld; }
until_true slurmctld scontrol ping
alive "$run/slurmd.pid" || { free 16818 && slurmd -N "$host"; }
# A node that was lost comes back by itself; one that an administrator set down does not.
until_true "the node" bash -c "sinfo -h -o %T | grep -qE '^(idle|mixed|allocated)$' \
    || { scontrol update NodeName=$host State=RESUME; false; }"
sinfo -o '%P %l %T %G %c %m'
