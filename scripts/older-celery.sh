#!/usr/bin/env bash
# Make the environment of the oldest Celery that is supported, for its part of the adapters' contract, with gevent in it.
#
#   scripts/older-celery.sh [VENV]        makes VENV/celery-5.3; VENV is .venv unless given
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${1:-.venv}
older=$venv/celery-5.3
export UV_PYTHON_DOWNLOADS=never

"$older/bin/python" -c 'import celery, gevent, redis, semel' 2>/dev/null && exit 0
"$venv/bin/uv" venv --quiet --clear --python "$venv/bin/python" "$older"
"$venv/bin/uv" pip install --quiet --python "$older/bin/python" \
  celery==5.3.6 kombu==5.3.7 billiard==4.2.4 vine==5.1.0 amqp==5.3.1 redis==5.0.8 gevent==25.9.1 -e '.[mysql]'
