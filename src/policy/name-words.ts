/** The words of made-up names: short, plain and hard to confuse. 64 of each, so that a byte chooses them evenly. */

export const adjectives = (
  'amber azure bold brave brief bright brisk broad calm clear clever cool copper coral crisp curly dark deep dry eager ' +
  'early fair fast fine firm fresh gentle glad golden grand green happy hazel high jolly keen kind large light lively ' +
  'lucky mellow merry mild neat noble plain proud quick quiet rapid ready round royal ruby sharp silver smooth snowy ' +
  'soft solid sunny swift tidy'
).split(' ');

export const nouns = (
  'acorn anchor apple arrow badger barley basin beacon birch bridge brook cabin candle canoe castle cedar cliff clover ' +
  'comet crane creek delta dune falcon fern field finch forest fox garden gate harbor hawk heron hill island lake ' +
  'lantern larch lark lemon maple meadow mill moon moss oak olive otter owl pebble pine plum pond raven reef ridge ' +
  'river robin sail spruce tulip willow wren'
).split(' ');
