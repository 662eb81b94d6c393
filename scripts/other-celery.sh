#!/usr/bin/env bash
# Make what the adapters' tests run beside the newest Celery on prefork: the oldest Celery that is supported, in an
# environment of its own, and gevent and eventlet, each in a folder for PYTHONPATH.
#
#   scripts/other-celery.sh [VENV]        makes VENV/celery-5.3, VENV/gevent and VENV/eventlet; VENV is .venv unless given
set -euo pipefail
cd "$(dirname "$0")/.."

venv=${1:-.venv}
export UV_PYTHON_DOWNLOADS=never

if ! "$venv/celery-5.3/bin/python" -c 'import celery, redis, semel' 2>/dev/null; then
  "$venv/bin/uv" venv --quiet --clear --python "$venv/bin/python" "$venv/celery-5.3"
  "$venv/bin/uv" pip install --quiet --python "$venv/celery-5.3/bin/python" \
    celery==5.3.6 kombu==5.3.7 billiard==4.2.4 vine==5.1.0 amqp==5.3.1 redis==5.0.8 -e .
fi
if ! PYTHONPATH=$venv/gevent "$venv/bin/python" -c 'import gevent' 2>/dev/null; then
  "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --target "$venv/gevent" gevent==25.9.1
fi
if ! PYTHONPATH=$venv/eventlet "$venv/bin/python" -c 'import eventlet' 2>/dev/null; then
  "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --target "$venv/eventlet" eventlet==0.41.3
fi
