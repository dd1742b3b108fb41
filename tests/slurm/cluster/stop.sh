#!/usr/bin/env bash
# Stop what start.sh FOLDER started, by pid: stop.sh FOLDER
set -uo pipefail
home=$1
run=$home/run
export SLURM_CONF=$home/etc/slurm.conf

# After a crash, the number in a pid file may by now be another program's.
is() { [ "$(ps -o comm= -p "$1" 2> /dev/null)" = "$2" ]; }

stop() { # NAME PROGRAM
    local file=$run/$1.pid pid
    [ -f "$file" ] || return 0
    pid=$(cat "$file")
    is "$pid" "$2" && kill "$pid" 2> /dev/null
    for _ in $(seq 75); do
        is "$pid" "$2" || break
        sleep 0.2
    done
    is "$pid" "$2" && kill -9 "$pid" 2> /dev/null
    rm -f "$file"
}

timeout 10 scancel --user=root 2> /dev/null
for _ in $(seq 40); do
    [ "$(timeout 5 squeue -h 2> /dev/null)" ] || break
    sleep 0.5
done
stop slurmd slurmd
stop slurmctld slurmctld
stop slurmdbd slurmdbd
stop mariadb mariadbd
stop munge munged
for name in slurm gres cgroup; do
    [ "$(readlink "/etc/slurm/$name.conf")" = "$home/etc/$name.conf" ] && rm "/etc/slurm/$name.conf"
done
exit 0
