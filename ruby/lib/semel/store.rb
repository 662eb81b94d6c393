# frozen_string_literal: true

require "semel/store/statements"
require "semel/store/faults"
require "semel/store/session"
require "semel/store/own_connections"
require "semel/store/sources"
require "semel/store/active_record"
require "semel/store/request"
require "semel/store/begin"
require "semel/store/finish"
