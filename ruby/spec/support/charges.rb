# frozen_string_literal: true

# Charges that a test makes through the guard, within "with a database".
RSpec.shared_context "with charges" do
  let(:effects) { [] }

  # One delivery of a charge, as a job would make it.
  def charge(fail_at: nil, error: RuntimeError.new("boom"), **options)
    options = { acting: :explicit, payload: { amount: 100 } }.merge(options)
    once.operation("charge-order", key: key, **options) do |op|
      raise error if fail_at == :claimed

      made = op.acting do
        raise error if fail_at == :inside

        effects << op.reference
        raise error if fail_at == :effect

        "charge-#{effects.length}"
      end
      op.done(made)
      raise error if fail_at == :completed

      made
    end
  end
end
